"use strict";

// Fonts of the reader's own system: the theme's default names web fonts that nobody here serves.
const text = "system-ui, sans-serif";
const code = "ui-monospace, monospace";

Redoc.init(
  // Absolute, so that the page works at /redoc and at /api/v1/redoc.
  "/openapi.json",
  {
    hideLogo: true,
    nativeScrollbars: true,
    theme: { typography: { fontFamily: text, headings: { fontFamily: text }, code: { fontFamily: code } } },
  },
  document.getElementById("reference"),
);

"use strict";

SwaggerUIBundle({
  dom_id: "#swagger-ui",
  // Absolute, so that the page works at /docs and at /api/v1/docs.
  url: "/openapi.json",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  // A token in local storage would outlive the tab.
  persistAuthorization: false,
  // The default sends the document's address to a validator on the internet.
  validatorUrl: null,
});

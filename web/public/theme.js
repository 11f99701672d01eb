// The colours that were chosen; without a choice the system's. See src/lib/theme.svelte.ts.
(function () {
  var chosen = null;
  try {
    chosen = localStorage.getItem('theme');
  } catch (_) {
    // Storage may be switched off: the system's colours then.
  }
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
})();

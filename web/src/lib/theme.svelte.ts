export type Theme = 'system' | 'light' | 'dark';

/** Which colours are shown: the system's, or what was chosen in this browser. `public/theme.js` reads it before the page. */
class ThemeChoice {
  chosen = $state<Theme>(stored());
  #systemIsDark = $state(false);

  constructor() {
    const query = matchMedia('(prefers-color-scheme: dark)');
    this.#systemIsDark = query.matches;
    query.addEventListener('change', (event) => (this.#systemIsDark = event.matches));
  }

  get isDark(): boolean {
    return this.chosen === 'system' ? this.#systemIsDark : this.chosen === 'dark';
  }

  choose(theme: Theme): void {
    this.chosen = theme;
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      if (theme === 'system') localStorage.removeItem('theme');
      else localStorage.setItem('theme', theme);
    } catch {
      // Storage may be switched off: it holds for this page then.
    }
  }
}

function stored(): Theme {
  const theme = document.documentElement.dataset.theme;
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

export const theme = new ThemeChoice();

/** The same choice as the interface's, kept under the same name: see src/lib/theme.svelte.ts and public/theme.js. */
export function themeSwitch(): void {
  const group = document.querySelector<HTMLElement>('.switch');
  if (!group) return;
  const root = document.documentElement;
  const buttons = [...group.querySelectorAll<HTMLButtonElement>('button')];
  const show = () => {
    const chosen = root.dataset.theme ?? 'system';
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.theme === chosen));
  };
  for (const button of buttons)
    button.addEventListener('click', () => {
      choose(root, button.dataset.theme ?? 'system');
      show();
    });
  show();
  group.hidden = false;
}

function choose(root: HTMLElement, theme: string): void {
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === 'system') localStorage.removeItem('theme');
    else localStorage.setItem('theme', theme);
  } catch {
    // Storage may be switched off: it holds for this page then.
  }
}

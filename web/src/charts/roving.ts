/**
 * Makes several buttons one stop for the Tab key: the arrow keys go from one to the next. For `{@attach}`.
 */
export function roving(bar: HTMLElement): () => void {
  let current = 0;
  const all = () => [...bar.querySelectorAll<HTMLElement>('a, button')];
  const arrange = () => {
    const buttons = all();
    current = Math.max(0, Math.min(current, buttons.length - 1));
    for (const [place, button] of buttons.entries()) button.tabIndex = place === current ? 0 : -1;
  };
  const pressed = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
    const buttons = all();
    const next = buttons[buttons.indexOf(event.target as HTMLElement) + by];
    if (by === 0 || !next) return;
    event.preventDefault();
    next.focus();
  };
  const focused = (event: FocusEvent) => {
    const place = all().indexOf(event.target as HTMLElement);
    if (place < 0) return;
    current = place;
    arrange();
  };
  const leaving = new AbortController();
  const { signal } = leaving;
  bar.addEventListener('keydown', pressed, { signal });
  bar.addEventListener('focusin', focused, { signal });
  const changes = new MutationObserver(arrange);
  changes.observe(bar, { childList: true, subtree: true });
  arrange();
  return () => {
    leaving.abort();
    changes.disconnect();
  };
}

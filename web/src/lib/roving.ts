const STOPS = 'button:not(:disabled), a[href]';

/** Tab stops at one of a group of buttons or links. The arrows, Home and End go to the others. Use it as an attachment. */
export function roving(group: Element): () => void {
  const all = () => [...group.querySelectorAll<HTMLElement>(STOPS)];
  let current: HTMLElement | undefined;

  function arrange(): void {
    const buttons = all();
    if (!current || !buttons.includes(current)) current = buttons[0];
    for (const button of buttons) {
      const index = button === current ? 0 : -1;
      if (button.tabIndex !== index) button.tabIndex = index;
    }
  }

  function focused(event: Event): void {
    const button = (event.target as Element).closest<HTMLElement>(STOPS);
    if (!button || button === current) return;
    current = button;
    arrange();
  }

  function pressed(event: Event): void {
    const { key, target } = event as KeyboardEvent;
    if (!(target instanceof HTMLElement)) return;
    const buttons = all();
    const at = buttons.indexOf(target);
    const places: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: buttons.length - 1,
    };
    const place = places[key];
    if (at < 0 || place === undefined) return;
    event.preventDefault();
    buttons[(place + buttons.length) % buttons.length]?.focus();
  }

  arrange();
  const observer = new MutationObserver(arrange);
  observer.observe(group, { childList: true, subtree: true });
  group.addEventListener('focusin', focused);
  group.addEventListener('keydown', pressed);
  return () => {
    observer.disconnect();
    group.removeEventListener('focusin', focused);
    group.removeEventListener('keydown', pressed);
  };
}

/** Keys that work everywhere. `g` and a letter goes somewhere; `/` goes to what searches on the page. */
export const places: Record<string, { href: string; label: string }> = {
  f: { href: '/', label: 'Fleet' },
  a: { href: '/alerts', label: 'Alerts' },
  r: { href: '/run', label: 'Run on many' },
  n: { href: '/servers/new', label: 'Add a server' },
  w: { href: '/wall', label: 'Wall' },
  c: { href: '/account', label: 'Account' },
  h: { href: '/help', label: 'Help' },
};

/** Whether keys belong to what has the focus: a field, a terminal. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest('[data-keys]')) return true;
  if (target instanceof HTMLInputElement)
    return !['checkbox', 'radio', 'button', 'submit', 'range'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

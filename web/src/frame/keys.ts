import * as m from '#messages/app';

/** Keys that work everywhere. `g` and a letter goes somewhere; `/` goes to what searches on the page. */
export const places: Record<string, { href: string; label: () => string }> = {
  f: { href: '/', label: m.fleet },
  a: { href: '/alerts', label: m.alerts },
  t: { href: '/timeline', label: m.timeline },
  e: { href: '/explore', label: m.explore },
  d: { href: '/dashboards', label: m.dashboards },
  l: { href: '/logs', label: m.logs },
  r: { href: '/run', label: m.bulkRun },
  n: { href: '/servers/new', label: m.addAServer },
  w: { href: '/wall', label: m.wall },
  c: { href: '/account', label: m.account },
  h: { href: '/help', label: m.help },
};

/** The letter behind `g` that goes to an address. */
export function letterOf(href: string): string | undefined {
  return Object.keys(places).find((letter) => places[letter]?.href === href);
}

/** What a link is called where its keys are not in sight: `Timeline (g t)`. */
export function withKeys(label: string, href: string): string {
  const letter = letterOf(href);
  return letter ? m.withKeys({ label, keys: `${m.keyGo()} ${letter}` }) : label;
}

/** Whether keys belong to what has the focus: a field, a terminal. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest('[data-keys]')) return true;
  if (target instanceof HTMLInputElement)
    return !['checkbox', 'radio', 'button', 'submit', 'range'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Which way a key moves the time that a page shows: `,` and `.`, and arrows where nothing has the focus. Null for all others. */
export function wayOf(event: KeyboardEvent): -1 | 1 | null {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return null;
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return null;
  const isFree = event.target === document.body;
  if (event.key === ',' || (isFree && event.key === 'ArrowLeft')) return -1;
  if (event.key === '.' || (isFree && event.key === 'ArrowRight')) return 1;
  return null;
}

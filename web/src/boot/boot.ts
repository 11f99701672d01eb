// Runs before anything is painted, and long before the program of the page is here. The build puts it behind public/theme.js, in
// one file: build/pages.ts.
import { ask, type Early } from './requests';

declare global {
  interface Window {
    early?: Early;
  }
  /** The files of texts in other languages that every page needs, by language. The build fills it in. */
  const TRANSLATIONS: Record<string, string>;
}

/** A page whose program did not arrive is loaded again after this. */
const AGAIN_MS = 5_000;

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

window.early = ask(
  location,
  fetch.bind(window),
  (navigator as { locks?: LockManager }).locks,
  (path, token) =>
    new WebSocket(`${location.protocol.replace('http', 'ws')}//${location.host}/api/v1${path}`, ['bearer', token]),
);

// Who was signed in here sees the outline of the page at once.
if (stored('signed-in')) document.documentElement.dataset.known = '';

const spoken = [stored('language'), ...navigator.languages]
  .map((tag) => tag?.toLowerCase().split('-')[0] ?? '')
  .find((language) => language === 'en' || language in TRANSLATIONS);
const texts = spoken ? TRANSLATIONS[spoken] : undefined;
if (texts) {
  const link = document.createElement('link');
  link.rel = 'modulepreload';
  link.crossOrigin = '';
  link.href = texts;
  document.head.append(link);
}

addEventListener(
  'error',
  ({ target }) => {
    if (target instanceof HTMLScriptElement) setTimeout(() => location.reload(), AGAIN_MS);
  },
  true,
);

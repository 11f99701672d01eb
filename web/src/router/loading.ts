// Parts of the interface that are loaded when they are first shown, and what is done where one does not come.
import { translated } from '../text/catalogue';

/** How the service answers when a part did not come. */
export type Found = 'away' | 'same' | 'newer';

/** A page that was loaded again so recently is not loaded again automatically: instances of two versions may take turns. */
const RELOAD_AFTER_MS = 60_000;
const RELOADED_AT = 'reloaded-at';

/** Style sheets that did not come. Vite asks for each once, whatever became of it. */
const missing = new Set<string>();

/** Notes style sheets that do not come, so that they are asked for again. */
export function watchStyles(): void {
  // What the page itself names has come by now, or has not: programs wait for it.
  for (const link of document.querySelectorAll<HTMLLinkElement>('link[rel="stylesheet"]')) {
    if (link.sheet) continue;
    missing.add(link.href);
    link.remove();
  }
  const note = ({ target }: Event) => {
    if (!(target instanceof HTMLLinkElement) || target.rel !== 'stylesheet') return;
    missing.add(target.href);
    target.remove();
  };
  // The error of an element does not bubble.
  document.addEventListener('error', note, true);
}

/** Loads a part, and before it what is missing of the styles, and after it its texts in the language that is spoken. */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  await Promise.all([...missing].map(loadStyle));
  const part = await load();
  await translated();
  return part;
}

function loadStyle(href: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = href;
    link.onload = () => {
      missing.delete(href);
      resolve();
    };
    link.onerror = () => reject(new Error(`${href} did not come`));
    document.head.append(link);
  });
}

/** Asks the service for its page, which names the files of its version. */
export async function findService(): Promise<Found> {
  const own = document.querySelector('script[type="module"][src]')?.getAttribute('src');
  try {
    const answer = await fetch('/', { cache: 'no-store', headers: { Accept: 'text/html' } });
    if (!answer.ok) return 'away';
    return compared(await answer.text(), own ?? null);
  } catch {
    return 'away';
  }
}

/** Whether a page is the one that runs here, whose program is `own`. A page of somebody on the way is none of the service's. */
export function compared(page: string, own: string | null): Found {
  if (!page.includes('id="app"')) return 'away';
  return own === null || page.includes(`"${own}"`) ? 'same' : 'newer';
}

/** Loads the whole page again, which brings the newer version. False where that was done a moment ago. */
export function reloadOnce(now = Date.now()): boolean {
  const last = Number(sessionStorage.getItem(RELOADED_AT) ?? 0);
  if (Math.abs(now - last) < RELOAD_AFTER_MS) return false;
  sessionStorage.setItem(RELOADED_AT, String(now));
  location.reload();
  return true;
}

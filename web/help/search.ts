import { Finder, type HelpIndex, type Hit } from './find.ts';

/** Typing pauses for so long before the text is searched. */
const PAUSE_MS = 80;

/** The search in the bar. What it searches is loaded when somebody begins to. */
export function search(): void {
  const box = document.querySelector<HTMLElement>('.search');
  const form = box?.querySelector('form');
  const field = box?.querySelector('input');
  const panel = box?.querySelector<HTMLElement>('.results');
  const status = panel?.querySelector('p');
  const list = panel?.querySelector('ol');
  if (box && form && field && panel && status && list) new Search(box, form, field, panel, status, list);
}

class Search {
  readonly #box: HTMLElement;
  readonly #field: HTMLInputElement;
  readonly #panel: HTMLElement;
  readonly #status: HTMLElement;
  readonly #list: HTMLElement;
  #finder: Promise<Finder> | null = null;
  #timer = 0;

  constructor(
    box: HTMLElement,
    form: HTMLFormElement,
    field: HTMLInputElement,
    panel: HTMLElement,
    status: HTMLElement,
    list: HTMLElement,
  ) {
    this.#box = box;
    this.#field = field;
    this.#panel = panel;
    this.#status = status;
    this.#list = list;
    field.addEventListener('focus', () => void this.#load().catch(() => undefined));
    field.addEventListener('input', () => {
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => void this.#show(), PAUSE_MS);
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#show().then(() => this.#links()[0]?.click());
    });
    box.addEventListener('keydown', (event) => this.#key(event));
    box.addEventListener('focusout', ({ relatedTarget }) => {
      if (!(relatedTarget instanceof Node && box.contains(relatedTarget))) panel.hidden = true;
    });
    field.addEventListener('focus', () => (panel.hidden = !field.value.trim() || !status.textContent));
    // A press on the panel itself, such as on its scroll bar, leaves the focus where it is.
    panel.addEventListener('mousedown', (event) => {
      if (event.target instanceof Element && !event.target.closest('a')) event.preventDefault();
    });
    document.addEventListener('keydown', (event) => this.#anywhere(event));
    box.hidden = false;
    this.#begin();
  }

  /** `/help?q=words` searches at once: for links, and for browsers that search here. */
  #begin(): void {
    const asked = new URLSearchParams(location.search).get('q');
    if (!asked) return;
    this.#field.value = asked;
    this.#field.focus();
    void this.#show();
  }

  #load(): Promise<Finder> {
    this.#finder ??= fetch(document.body.dataset.search ?? '').then(async (answer) => {
      if (!answer.ok) throw new Error(`the index of the help answers ${answer.status}`);
      return new Finder((await answer.json()) as HelpIndex);
    });
    // Asked for again when it failed.
    this.#finder.catch(() => (this.#finder = null));
    return this.#finder;
  }

  async #show(): Promise<void> {
    clearTimeout(this.#timer);
    const query = this.#field.value.trim();
    if (!query) {
      this.#list.replaceChildren();
      this.#status.textContent = '';
      this.#panel.hidden = true;
      return;
    }
    try {
      const hits = (await this.#load()).find(query);
      // The person may have typed more since then.
      if (query !== this.#field.value.trim()) return;
      // The person may be at one of the results by now: the focus stays at its place.
      const at = this.#links().findIndex((link) => link === document.activeElement);
      this.#list.replaceChildren(...hits.map(itemOf));
      if (at >= 0) {
        // A browser may report that the focus has left, which hides the panel.
        this.#panel.hidden = false;
        (this.#links()[at] ?? this.#field).focus({ preventScroll: true });
      }
      this.#status.textContent = hits.length > 0 ? countOf(hits.length) : 'Nothing found. Try fewer or other words.';
    } catch {
      this.#list.replaceChildren();
      this.#status.textContent = 'The search cannot be loaded. Check the connection, then type again.';
    }
    this.#panel.hidden = !this.#box.contains(document.activeElement);
  }

  #links(): HTMLAnchorElement[] {
    return [...this.#list.querySelectorAll('a')];
  }

  #key(event: KeyboardEvent): void {
    if (event.key === 'Escape' && !this.#panel.hidden) {
      this.#panel.hidden = true;
      this.#field.focus({ preventScroll: true });
      this.#panel.hidden = true;
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const stops: HTMLElement[] = [this.#field, ...this.#links()];
      const at = stops.findIndex((stop) => stop === document.activeElement);
      const next = stops[at + (event.key === 'ArrowDown' ? 1 : -1)];
      if (this.#panel.hidden || !next) return;
      next.focus();
    } else return;
    event.preventDefault();
  }

  /** `/` goes to the search, as in the interface. */
  #anywhere(event: KeyboardEvent): void {
    if (event.key !== '/' || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    this.#field.focus();
    this.#field.select();
  }
}

function countOf(hits: number): string {
  return hits === 1 ? '1 result' : `${hits} results`;
}

function itemOf({ address, page, heading, excerpt }: Hit): HTMLLIElement {
  const title = document.createElement('strong');
  title.textContent = heading ? `${page} › ${heading}` : page;
  const text = document.createElement('span');
  text.className = 'excerpt';
  text.append(
    ...excerpt.map((piece) => {
      if (!piece.isMatch) return piece.text;
      const mark = document.createElement('mark');
      mark.textContent = piece.text;
      return mark;
    }),
  );
  const link = document.createElement('a');
  link.href = address;
  link.append(title, text);
  const item = document.createElement('li');
  item.append(link);
  return item;
}

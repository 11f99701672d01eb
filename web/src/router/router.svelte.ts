// Addresses of the interface. A page is a pattern, a title and a component that is loaded when it is first shown.
import type { Component } from 'svelte';
import { carried, put, stepsOf, type Step } from './steps';

export type Params = Record<string, string>;

export interface Page {
  pattern: string;
  title: () => string;
  /** Its component gets the parameters of the pattern as properties. */
  load: () => Promise<{ default: Component<never> }>;
  /** Shown without the frame of navigation: sign-in, the wall. */
  bare?: boolean;
  /** Can be seen without being signed in. */
  open?: boolean;
}

/** The parameters of a path that fits a pattern: `/servers/:id/:tab?`. A `?` makes the last part optional. */
export function match(pattern: string, path: string): Params | null {
  const wanted = pattern.split('/').filter(Boolean);
  const given = path.split('/').filter(Boolean);
  const params: Params = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index];
    if (part.startsWith(':')) {
      const name = part.replace(/^:|\?$/g, '');
      if (value === undefined) {
        if (part.endsWith('?')) continue;
        return null;
      }
      params[name] = safeDecode(value);
    } else if (part !== value) {
      return null;
    }
  }
  return given.length > wanted.length ? null : params;
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

class Router {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));
  /** The steps that led to what is shown. */
  #steps = stepsOf(history.state);

  constructor() {
    window.addEventListener('popstate', () => this.#moved());
    document.addEventListener('click', (event) => this.#click(event));
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** Goes to an address of the interface. `steps` are those that lead there; another address of the same page keeps its own. */
  go(address: string, how: { replace?: boolean; keepScroll?: boolean; steps?: readonly Step[] } = {}): void {
    const before = this.path;
    const isSamePage = new URL(address, location.origin).pathname === location.pathname;
    const steps = how.steps ?? (how.replace && isSamePage ? this.#steps : []);
    const state = steps.length > 0 ? { steps } : null;
    if (how.replace) history.replaceState(state, '', address);
    else history.pushState(state, '', address);
    this.#read();
    if (this.path !== before && !how.keepScroll) window.scrollTo(0, 0);
  }

  /** The present address with other parts of the query. `null` removes one. */
  with(changes: Record<string, string | null>): string {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(changes)) put(query, name, value);
    return this.#addressOf(query);
  }

  /** Changes parts of the query of the present address, without an entry in the history. `null` removes one. */
  set(changes: Record<string, string | null>): void {
    this.go(this.with(changes), { replace: true, keepScroll: true });
  }

  #addressOf(query: URLSearchParams): string {
    const text = query.toString();
    return this.path + (text ? `?${text}` : '');
  }

  #read(): void {
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
    this.#steps = stepsOf(history.state);
  }

  /** The browser's Back or Forward has led elsewhere. */
  #moved(): void {
    const [path, from] = [this.path, { query: this.query, steps: this.#steps }];
    this.#read();
    const query = this.path === path ? carried(from, { query: this.query, steps: this.#steps }) : null;
    if (query) this.go(this.#addressOf(query), { replace: true, keepScroll: true });
  }

  /** Links to pages of the interface are followed here; everything else is the browser's. */
  #click(event: MouseEvent): void {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link?.href || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (link.dataset.external !== undefined) return;
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  }
}

export const router = new Router();

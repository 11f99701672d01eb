// The last day of servers, as bars: read for those that somebody looks at, many with one request.
import { api, take } from '../../api/client';
import { failureOf } from '../../api/failure';
import { clock } from '../../live/clock.svelte';
import { fleet, type Row } from '../../live/fleet.svelte';
import type { Bar } from './beatPaths';

/** Servers of one request: as many as the service takes. */
const AT_ONCE = 100;
/** What comes into sight while somebody scrolls is asked for together. */
const TOGETHER_MS = 150;
/** Servers that wait for their bar, beyond those that are being read. */
const MAX_WANTED = 300;
/** A bar is read again after this: its last part grows. */
const OLD_MS = 300_000;
/** After a server came or went, so long until its event is stored. */
const SETTLED_MS = 3_000;
/** After a failure. */
const PAUSE_MS = 30_000;

/** The bar of one server. */
export class Held {
  bar = $state.raw<Bar | null>(null);
  /** It could not be read, and there is none from before. */
  isFailed = $state(false);
  at = -Infinity;
  /** The status that the server had when it was read. */
  status = '';
}

class Bars {
  #held = new WeakMap<Row, Held>();
  #wanted = new Set<Row>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pausedUntil = 0;
  #isReading = false;
  /** The service does not know of bars: it is older than this page. */
  isMissing = $state(false);

  of(row: Row): Held {
    let held = this.#held.get(row);
    if (!held) this.#held.set(row, (held = new Held()));
    return held;
  }

  /** Somebody looks at it. */
  want(row: Row): void {
    if (this.isMissing) return;
    const held = this.of(row);
    const isNews = held.status !== '' && held.status !== row.status;
    if (!isNews && clock.present() - held.at < OLD_MS) return;
    this.#wanted.add(row);
    this.#plan(isNews ? SETTLED_MS : TOGETHER_MS);
  }

  #plan(afterMs: number): void {
    const wait = Math.max(afterMs, this.#pausedUntil - clock.present());
    if (!this.#isReading) this.#timer ??= setTimeout(() => void this.#read(), wait);
  }

  async #read(): Promise<void> {
    this.#timer = undefined;
    // What cannot be reached is asked for again by who still looks at it.
    if (fleet.isCut) return this.#wanted.clear();
    this.#isReading = true;
    // What came into sight last is requested now. What was scrolled past long ago asks again when it is seen again.
    const rows = [...this.#wanted].slice(-AT_ONCE);
    for (const row of rows) this.#wanted.delete(row);
    if (this.#wanted.size > MAX_WANTED) this.#wanted.clear();
    try {
      const query = { ids: rows.map((row) => row.id).join(','), limit: AT_ONCE };
      const found = await take(api.GET('/api/v1/servers/availability', { params: { query } }));
      const bars = new Map(found.map((bar) => [bar.server_id, bar]));
      const now = clock.present();
      for (const row of rows) {
        const held = this.of(row);
        const bar = bars.get(row.id);
        if (bar) held.bar = bar;
        Object.assign(held, { at: now, status: row.status, isFailed: !bar && !held.bar });
      }
    } catch (error) {
      const { status } = failureOf(error);
      this.isMissing = status === 404 || status === 422;
      this.#pausedUntil = clock.present() + PAUSE_MS;
      for (const row of rows) {
        this.of(row).isFailed = this.of(row).bar === null;
        this.#wanted.add(row);
      }
    }
    this.#isReading = false;
    if (this.#wanted.size > 0 && !this.isMissing) this.#plan(TOGETHER_MS);
  }
}

export const bars = new Bars();

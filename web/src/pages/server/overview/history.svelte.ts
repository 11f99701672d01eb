// The history that the charts show: read once for a range, then kept up by the samples that arrive. What was missed, or came
// late, is read again.
import { clock } from '../../../live/clock.svelte';
import { api, take } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { SeriesName, Snapshot } from '../../../api/types';
import { LEAST_PACE } from '../../../charts/gaps';
import { Rates } from '../../../charts/rates';
import type { Span } from '../../../charts/ranges';
import { Appender, emptyTable, readingsOf, tableOf, trim, type Table } from '../../../charts/series';
import { namesAsked } from '../../../lib/seriesNames';
import { choose, namesFrom } from './names';

/** How many points there are at most: no screen shows more. */
const MOST_POINTS = 900;
/** What came late is read after so long, so that one answer has all of it. */
const MEND_MS = 4_000;
/** Columns of interfaces and containers that are gone are forgotten after so many seconds. */
const FORGET_AFTER = 3_600;

/** Which of the series that there are somebody wants. */
export interface Wanted {
  from: (names: string[], cores: boolean, latest: Snapshot | null) => string[];
  isShown: (name: string, cores: boolean) => boolean;
}

/** How a span is read. */
interface Reading {
  /** It ends now, and continues. */
  live: boolean;
  /** CPU core by core. */
  cores: boolean;
  /** When the server was made, in seconds: nothing but an import is older. Without it nobody asks what lies before. */
  born?: number;
}

/** A first point that is so much of the span away from its beginning may be the first of all. */
const YOUNG_SHARE = 50;

export class History {
  /** Another object whenever it was read again; its columns are changed in place. */
  table = $state.raw<Table>(emptyTable());
  /** The series that the range has. */
  names = $state.raw<SeriesName[]>([]);
  /** Counts what was added, so that it can be drawn when there is time. */
  added = $state(0);
  failure = $state.raw<Failure | null>(null);
  busy = $state(false);
  /** Whether the range has been read at least once. */
  isKnown = $state(false);
  /** Whether points are means of many samples. */
  isCoarse = $state(false);
  /** Nothing lies before the first point: the server was not measured earlier. */
  isYoung = $state(false);

  readonly #id: string;
  #span: Span = { from: 0, to: 0 };
  #how: Reading = { live: false, cores: false };
  #asked: AbortController | null = null;
  #appender: Appender | null = null;
  #rates = new Rates();
  #counters: ReadonlySet<string> = new Set();
  #mending: ReturnType<typeof setTimeout> | undefined;
  #latest: () => Snapshot | null;
  #interval: () => number;
  #wanted: Wanted;
  #mostPoints: (seconds: number) => number;

  constructor(
    id: string,
    latest: () => Snapshot | null,
    interval: () => number,
    wanted: Wanted = choose,
    mostPoints: number | ((seconds: number) => number) = MOST_POINTS,
  ) {
    this.#id = id;
    this.#latest = latest;
    this.#interval = interval;
    this.#wanted = wanted;
    this.#mostPoints = typeof mostPoints === 'number' ? () => mostPoints : mostPoints;
  }

  /** When the server was first measured, if that lies within a live range. */
  get since(): number | null {
    return this.isYoung ? (this.table.times[0] ?? null) : null;
  }

  /** Reads a span. What was there stays until the answer comes. */
  async load(span: Span, how: Reading): Promise<void> {
    this.#span = span;
    this.#how = how;
    clearTimeout(this.#mending);
    this.#mending = undefined;
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    this.busy = true;
    try {
      const table = await this.#read(span, how, asked.signal);
      const isYoung = await this.#beginsIn(table, span, how, asked.signal);
      if (this.#asked !== asked) return;
      this.isYoung = isYoung;
      const interval = this.#interval();
      this.isCoarse = isMean(table);
      // Samples of the moment come more often than those that the history has: its points stay what they are.
      this.#appender = how.live ? new Appender(table, this.isCoarse ? interval : table.resolution) : null;
      this.table = table;
      this.isKnown = true;
      this.failure = null;
      // What arrived while the answer was on its way.
      const latest = this.#latest();
      if (latest && how.live) this.add(latest);
    } catch (error) {
      if (this.#asked === asked) this.failure = failureOf(error);
    } finally {
      if (this.#asked === asked) this.busy = false;
    }
  }

  /** Puts a sample behind what is there. */
  add(sample: Snapshot): void {
    const at = Date.parse(sample.timestamp) / 1000;
    // A rate needs the sample before, whether or not it is shown.
    const readings = readingsOf(sample, this.#rates, this.#interval(), this.#counters);
    this.#rates.forgetBefore(at - FORGET_AFTER);
    const appender = this.#appender;
    if (!this.#how.live || !appender) return;
    // The names were asked for before the first sample of a new server was stored.
    if (this.names.length === 0 && this.#mending === undefined) this.#mend();
    const before = appender.table.times.at(-1);
    if (!appender.add(at, readings, (name) => this.#wanted.isShown(name, this.#how.cores))) return this.#mend();
    trim(appender.table, at - (this.#span.to - this.#span.from) * 1.02);
    this.added += 1;
    // What lies between may come later: an agent that was away brings what it kept.
    if (before !== undefined && at - before > Math.max(appender.table.resolution, this.#interval(), LEAST_PACE) * 3)
      this.#mend();
  }

  /** Reads the range again, a little later. */
  mend(): void {
    this.#mend();
  }

  stop(): void {
    clearTimeout(this.#mending);
    this.#asked?.abort();
    this.#asked = null;
  }

  /** Whether what was read is all that there is of the server up to now. */
  async #beginsIn(table: Table, span: Span, { live, born }: Reading, signal: AbortSignal): Promise<boolean> {
    const first = table.times[0] ?? span.to;
    if (!live || born === undefined || first - span.from < (span.to - span.from) / YOUNG_SHARE) return false;
    if (born >= span.from) return true;
    const path = { server_id: this.#id };
    const end = new Date(span.from * 1000).toISOString();
    const query = { start: new Date(0).toISOString(), end, names: 'cpu_percent', max_points: 1 };
    const request = api.GET('/api/v1/metrics/{server_id}/series', { params: { path, query }, signal });
    // A range that begins with nothing is right, too.
    return take(request).then(
      ({ timestamps }) => timestamps.length === 0,
      () => false,
    );
  }

  #mend(): void {
    clearTimeout(this.#mending);
    if (!this.#how.live) return;
    this.#mending = setTimeout(() => {
      this.#mending = undefined;
      const length = this.#span.to - this.#span.from;
      const to = clock.present() / 1000;
      void this.load({ from: to - length, to }, this.#how);
    }, MEND_MS);
  }

  async #read(span: Span, how: Reading, signal: AbortSignal): Promise<Table> {
    const path = { server_id: this.#id };
    const start = new Date(span.from * 1000).toISOString();
    // A live one has no end: the machine's clock may be ahead of this one.
    const range = how.live ? { start } : { start, end: new Date(span.to * 1000).toISOString() };
    const { names } = await take(
      api.GET('/api/v1/metrics/{server_id}/names', {
        params: { path, query: { ...range, start: namesFrom(span.from) } },
        signal,
      }),
    );
    this.names = names;
    this.#counters = new Set(names.filter((one) => one.kind === 'counter').map((one) => one.name));
    const wanted = this.#wanted.from(
      names.map((one) => one.name),
      how.cores,
      this.#latest(),
    );
    if (wanted.length === 0) return emptyTable();
    const query = { ...range, names: namesAsked(wanted), max_points: this.#mostPoints(span.to - span.from) };
    return tableOf(await take(api.GET('/api/v1/metrics/{server_id}/series', { params: { path, query }, signal })));
  }
}

/** Whether any point of a table is the mean of several: its least is not its greatest. */
function isMean(table: Table): boolean {
  for (const column of table.columns.values()) {
    for (const [place, least] of column.min.entries()) {
      if (least !== null && least !== column.max[place]) return true;
    }
  }
  return false;
}

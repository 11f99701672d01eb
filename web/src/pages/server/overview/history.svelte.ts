// The history that the charts show: read once for a range, then kept up by the samples that arrive. What was missed, or came
// late, is read again.
import { clock } from '../../../live/clock.svelte';
import { api, take } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { SeriesName, Snapshot } from '../../../api/types';
import { Rates } from '../../../charts/rates';
import type { Span } from '../../../charts/ranges';
import { Appender, emptyTable, readingsOf, tableOf, trim, type Table } from '../../../charts/series';
import { choose } from './names';

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

  readonly #id: string;
  #span: Span = { from: 0, to: 0 };
  #isLive = false;
  #hasCores = false;
  #asked: AbortController | null = null;
  #appender: Appender | null = null;
  #rates = new Rates();
  #counters: ReadonlySet<string> = new Set();
  #mending: ReturnType<typeof setTimeout> | undefined;
  #latest: () => Snapshot | null;
  #interval: () => number;
  #wanted: Wanted;
  #mostPoints: number;

  constructor(
    id: string,
    latest: () => Snapshot | null,
    interval: () => number,
    wanted: Wanted = choose,
    mostPoints = MOST_POINTS,
  ) {
    this.#id = id;
    this.#latest = latest;
    this.#interval = interval;
    this.#wanted = wanted;
    this.#mostPoints = mostPoints;
  }

  /** Reads a span. What was there stays until the answer comes. A live one ends now, and continues. */
  async load(span: Span, how: { live: boolean; cores: boolean }): Promise<void> {
    this.#span = span;
    this.#isLive = how.live;
    this.#hasCores = how.cores;
    clearTimeout(this.#mending);
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    this.busy = true;
    try {
      const table = await this.#read(span, how, asked.signal);
      if (this.#asked !== asked) return;
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
    if (!this.#isLive || !appender) return;
    const before = appender.table.times.at(-1);
    if (!appender.add(at, readings, (name) => this.#wanted.isShown(name, this.#hasCores))) return this.#mend();
    trim(appender.table, at - (this.#span.to - this.#span.from) * 1.02);
    this.added += 1;
    // What lies between may come later: an agent that was away brings what it kept.
    if (before !== undefined && at - before > Math.max(appender.table.resolution, this.#interval()) * 3) this.#mend();
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

  #mend(): void {
    clearTimeout(this.#mending);
    if (!this.#isLive) return;
    this.#mending = setTimeout(() => {
      const length = this.#span.to - this.#span.from;
      const to = clock.present() / 1000;
      void this.load({ from: to - length, to }, { live: true, cores: this.#hasCores });
    }, MEND_MS);
  }

  async #read(span: Span, how: { live: boolean; cores: boolean }, signal: AbortSignal): Promise<Table> {
    const path = { server_id: this.#id };
    const start = new Date(span.from * 1000).toISOString();
    // A live one has no end: the machine's clock may be ahead of this one.
    const range = how.live ? { start } : { start, end: new Date(span.to * 1000).toISOString() };
    const { names } = await take(
      api.GET('/api/v1/metrics/{server_id}/names', { params: { path, query: range }, signal }),
    );
    this.names = names;
    this.#counters = new Set(names.filter((one) => one.kind === 'counter').map((one) => one.name));
    const wanted = this.#wanted.from(
      names.map((one) => one.name),
      how.cores,
      this.#latest(),
    );
    if (wanted.length === 0) return emptyTable();
    const query = { ...range, names: wanted.join(','), max_points: this.#mostPoints };
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

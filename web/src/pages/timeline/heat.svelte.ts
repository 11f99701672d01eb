// The rows of the heat map as they are read: those in sight first, a few at a time, the others when they are wanted.
import { api, take } from '../../api/client';
import { failureOf, type Failure } from '../../api/failure';
import type { Span } from '../../charts/ranges';
import { bucketAt, heatRow, type HeatRow } from './grid';

/** Servers of one request: their ids must fit into an address. */
const AT_ONCE = 40;
/** Requests on their way at the same time. */
const MOST_ASKED = 2;

/** What is asked of each server. */
export interface HeatQuery {
  metric: string;
  /** Seconds. */
  from: number;
  to: number;
  buckets: number;
}

export class Heat {
  /** Changes with each answer. */
  version = $state(0);
  failure = $state.raw<Failure | null>(null);
  /** Rows of the present query that have come. */
  known = $state(0);
  /** The middle of the newest bucket in which anything was measured; null until there is one. */
  newest = $state<number | null>(null);
  /** The seconds of a bucket; null until the first answer. */
  width = $state<number | null>(null);
  #start = 0;
  #rows = new Map<string, HeatRow>();
  /** What was asked of each row, so that an older one is known as such. */
  #askedOf = new Map<string, HeatQuery>();
  #query: HeatQuery | null = null;
  #inSight: readonly string[] = [];
  #others: readonly string[] = [];
  #onTheWay = new Set<string>();
  #abort = new AbortController();
  #asked = 0;
  #newest = -Infinity;

  /** The row of a server; it may be one of the query before until there is a newer one. */
  row(id: string): HeatRow | undefined {
    return this.#rows.get(id);
  }

  /** The cell of a time; a minute until there are cells. */
  cellAt(at: number): Span {
    void this.version;
    return bucketAt(this.width === null ? { start: 0, width: 60 } : { start: this.#start, width: this.width }, at);
  }

  /** Asks something else. Rows of another metric are of no use; those of another time are shown until newer ones come. */
  ask(query: HeatQuery): void {
    if (this.#query?.metric !== query.metric) {
      this.#rows = new Map();
      this.width = null;
      this.newest = null;
    }
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#query = query;
    this.#askedOf.clear();
    this.#onTheWay.clear();
    this.#asked = 0;
    this.known = 0;
    this.#newest = -Infinity;
    this.failure = null;
    this.version += 1;
    this.#next();
  }

  /** Says which rows are in sight, and which others are wanted, in their order. */
  want(inSight: readonly string[], others: readonly string[]): void {
    this.#inSight = inSight;
    this.#others = others;
    this.#next();
  }

  retry(): void {
    this.failure = null;
    this.#next();
  }

  stop(): void {
    this.#abort.abort();
    this.#query = null;
  }

  #next(): void {
    const query = this.#query;
    while (query && this.failure === null && this.#asked < MOST_ASKED) {
      const ids = this.#missing(query);
      if (ids.length === 0) return;
      for (const id of ids) this.#onTheWay.add(id);
      this.#asked += 1;
      void this.#read(query, ids, this.#abort.signal);
    }
  }

  /** The next servers to read. */
  #missing(query: HeatQuery): string[] {
    const ids: string[] = [];
    const isMissing = (id: string) => this.#askedOf.get(id) !== query && !this.#onTheWay.has(id);
    for (const list of [this.#inSight, this.#others]) {
      for (const id of list) {
        if (isMissing(id) && ids.push(id) === AT_ONCE) return ids;
      }
      // What is in sight does not wait for a request to be full.
      if (ids.length > 0) return ids;
    }
    return ids;
  }

  async #read(query: HeatQuery, ids: string[], signal: AbortSignal): Promise<void> {
    const isPresent = () => this.#query === query && !signal.aborted;
    try {
      const asked = {
        metric: query.metric,
        start: new Date(query.from * 1000).toISOString(),
        end: new Date(query.to * 1000).toISOString(),
        buckets: query.buckets,
        servers: ids.join(','),
      };
      const heat = await take(api.GET('/api/v1/metrics/fleet/heat', { params: { query: asked }, signal }));
      if (!isPresent()) return;
      // A server that is missing in the answer was deleted.
      for (const id of ids) this.#askedOf.set(id, query);
      for (const { server_id, mean, max } of heat.servers) {
        const { start, bucket_seconds: width, scale } = heat;
        this.#rows.set(server_id, heatRow({ start, width, scale, mean: given(mean), max: given(max) }));
        const last = lastMeasured(mean);
        if (last >= 0) this.#newest = Math.max(this.#newest, start + (last + 0.5) * width);
      }
      this.newest = Number.isFinite(this.#newest) ? this.#newest : null;
      this.#start = heat.start;
      this.width = heat.bucket_seconds;
      this.known = this.#askedOf.size;
      this.version += 1;
    } catch (error) {
      if (isPresent()) this.failure = failureOf(error);
    } finally {
      if (isPresent()) {
        for (const id of ids) this.#onTheWay.delete(id);
        this.#asked -= 1;
        this.#next();
      }
    }
  }
}

/** The place of the last value; -1 where there is none. */
function lastMeasured(values: readonly (number | null | undefined)[]): number {
  let place = values.length - 1;
  while (place >= 0 && values[place] == null) place -= 1;
  return place;
}

function given(values: readonly (number | null | undefined)[]): (number | null)[] {
  return values.map((value) => value ?? null);
}

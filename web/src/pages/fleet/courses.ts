// The last hour of CPU and memory of all servers, and of all together: from the history first, then from what the socket tells.
import type { components } from '../../../generated/api';
import { api, take, takePage } from '../../api/client';
import { failureOf, type Failure } from '../../api/failure';
import { Course, type Columns } from '../../charts/sparklineCourse';
import { fleet, type Reading, type Row } from '../../live/fleet.svelte';
import { meansOf } from './means';

const NAMES = ['cpu_percent', 'memory_percent'] as const;

/** Servers whose history is read with one request. */
const AT_ONCE = 500;

/** The history of more servers is too much to send: their charts begin with live values. */
const MAX_READ = 2_000;

/** Servers of one request by their ids: as many as the service takes. */
const MAX_IDS = 100;
/** What comes into sight while somebody scrolls is asked for together. */
const TOGETHER_MS = 150;

/** Memory sizes of more servers are not requested: totals then show the percentage alone. */
const MAX_SIZED = 500;

type FleetSeries = components['schemas']['FleetSeriesOut'];

export interface Pair {
  cpu: Course;
  memory: Course;
  /** When the newest sample in it was taken, as `sampledAt` of its row. */
  takenAt: number;
}

function pair(): Pair {
  return { cpu: new Course(), memory: new Course(), takenAt: 0 };
}

class Courses {
  // With the rows, which go when somebody else signs in. Who leaves the page and comes back finds them again.
  #pairs = new WeakMap<Row, Pair>();
  #listeners = new Set<() => void>();
  /** There are more servers than were read: the others are read when they are seen. */
  #isPartial = false;
  #read = new WeakSet<Row>();
  #wanted = new Set<Row>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Of all servers together. */
  readonly all = pair();
  #memory = new Map<string, number>();
  #areSizesKnown = false;
  /** The memory of each server before live values: its part of all memory depends on the sizes. */
  #past: { id: string; columns: Columns }[] = [];

  constructor() {
    fleet.onReset(() => {
      this.#memory.clear();
      this.#areSizesKnown = false;
      this.#past = [];
      for (const course of [this.all.cpu, this.all.memory]) course.fill(meansOf([]));
    });
  }

  /** The bytes of each server's memory, where they are known; null while they are being read. */
  get sizes(): ReadonlyMap<string, number> | null {
    return this.#areSizesKnown || fleet.rows.length > MAX_SIZED ? this.#memory : null;
  }

  /** Of a server. There is one as soon as somebody asks. */
  of(row: Row): Pair {
    let found = this.#pairs.get(row);
    if (!found) this.#pairs.set(row, (found = pair()));
    return found;
  }

  /** Follows until what it gives is called. */
  watch(): () => void {
    return fleet.onReadings((readings) => this.#told(readings));
  }

  /** Calls when the size of memories is known. */
  onSizes(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads the history. Returns why it could not, or null. */
  async load(): Promise<Failure | null> {
    this.#read = new WeakSet();
    try {
      const cpus: Columns[] = [];
      this.#past = [];
      for (let offset = 0; offset < MAX_READ; offset += AT_ONCE) {
        const page = await takePage(
          api.GET('/api/v1/metrics/fleet', {
            params: { query: { names: NAMES.join(','), max_points: 60, limit: AT_ONCE, offset } },
          }),
        );
        // Both are asked for at the same time.
        if (!fleet.isKnown) await fleet.load();
        for (const found of page.items) this.#take(found, cpus);
        this.#isPartial = offset + page.items.length < page.total;
        if (!this.#isPartial || page.items.length === 0) break;
      }
      this.all.cpu.fill(meansOf(cpus));
      this.#fillMemory();
      return null;
    } catch (error) {
      return failureOf(error);
    }
  }

  /** Somebody looks at a server: its history is read where that of all was too much. */
  want(row: Row): void {
    if (!this.#isPartial || this.#read.has(row) || row.status === 'pending') return;
    this.#wanted.add(row);
    this.#timer ??= setTimeout(() => void this.#readWanted(), TOGETHER_MS);
  }

  async #readWanted(): Promise<void> {
    this.#timer = undefined;
    // What came into sight last is requested now.
    const rows = [...this.#wanted].slice(-MAX_IDS);
    this.#wanted.clear();
    for (const row of rows) this.#read.add(row);
    const query = { names: NAMES.join(','), max_points: 60, limit: MAX_IDS, ids: rows.map((row) => row.id).join(',') };
    try {
      const found = await take(api.GET('/api/v1/metrics/fleet', { params: { query } }));
      for (const one of found) this.#take(one);
    } catch {
      // A line that is missing is asked for when its server is seen again.
      for (const row of rows) this.#read.delete(row);
    }
  }

  /** Takes the history of one server, and adds it to that of all. */
  #take({ server_id, resolution_seconds, timestamps, series }: FleetSeries, cpus?: Columns[]): void {
    const row = fleet.row(server_id);
    if (row) this.#read.add(row);
    for (const [name, kind] of [
      ['cpu_percent', 'cpu'],
      ['memory_percent', 'memory'],
    ] as const) {
      const avg = series[name]?.avg;
      if (!avg) continue;
      const columns = { resolution_seconds, timestamps, avg } satisfies Columns;
      if (kind === 'cpu') cpus?.push(columns);
      else if (cpus) this.#past.push({ id: server_id, columns });
      if (row) this.of(row)[kind].fill(columns);
    }
  }

  /** Reads how large memories are: once for each server, where that is not too much. What fails is asked for the next time. */
  async size(): Promise<void> {
    const { rows } = fleet;
    if (rows.length > MAX_SIZED || rows.every((row) => row.status === 'pending' || this.#memory.has(row.id))) {
      this.#areSizesKnown = true;
      return;
    }
    const query = { names: 'memory_used,memory_percent', max_points: 1, limit: AT_ONCE };
    const found = await take(api.GET('/api/v1/metrics/fleet', { params: { query } })).catch(() => []);
    for (const { server_id, series } of found) {
      const used = series.memory_used?.avg.at(-1);
      const percent = series.memory_percent?.avg.at(-1);
      if (used && percent) this.#memory.set(server_id, (used / percent) * 100);
    }
    this.#areSizesKnown = true;
    this.#fillMemory();
    for (const listener of this.#listeners) listener();
  }

  /** The memory of all together in the last hour, as its share of all bytes where they are known. */
  #fillMemory(): void {
    const { sizes } = this;
    if (!sizes) return;
    const known = this.#past.filter(({ id }) => sizes.size === 0 || sizes.has(id));
    this.all.memory.fill(meansOf(known.map(({ id, columns }) => ({ ...columns, weight: sizes.get(id) }))));
  }

  #told(readings: Reading[]): void {
    for (const { server_id: id, timestamp, cpu_percent: cpu, memory_percent: memory } of readings) {
      const row = fleet.row(id);
      if (!row || timestamp === null) continue;
      const { intervalMs, sampledAt } = row;
      const courses = this.of(row);
      // The same sample comes again when the status alone has changed.
      if (courses.takenAt === sampledAt) continue;
      courses.takenAt = sampledAt;
      const at = sampledAt / 1000;
      if (intervalMs) courses.cpu.intervalSeconds = courses.memory.intervalSeconds = intervalMs / 1000;
      if (cpu !== null) courses.cpu.add(at, cpu);
      if (memory !== null) courses.memory.add(at, memory);
    }
  }
}

export const courses = new Courses();

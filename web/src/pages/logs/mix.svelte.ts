// Several logs in one, as they are written: a feed each, put in the order of their time.
import { untrack } from 'svelte';
import { clock } from '../../live/clock.svelte';
import type { Line, Origin } from '../../ui/log/lines';
import type { Log } from '../../ui/log/log.svelte';
import { Feed } from '../server/logs/feed.svelte';
import type { Source } from '../server/logs/source';
import { Merger } from './merge';
import type { Chosen } from './sources';

/** How long a line waits for older ones of other logs. */
const WINDOW_MS = 800;
const TURN_MS = 200;
/** The lines from before come at once: a log that says nothing for so long has said them, unless its connection is slow. */
const SETTLED_MS = 350;
/** For so long after them, older lines that come late may be the rest of them. */
const REST_MS = 30_000;
/** Lines from before, of each log. */
const TAIL = 500;

/** One of the logs. */
export class Member {
  readonly key: string;
  readonly serverId: string;
  readonly source: Source;
  readonly feed: Feed;
  origin: Origin;
  /** Lines that came, and those of them that came too late to stand at their place. */
  count = $state(0);
  late = $state(0);
  /** Milliseconds by which its server's clock is ahead. */
  offsetMs = 0;
  /** The lines from before, until all of them are there. */
  first: Line[] | null = [];
  restUntil = Infinity;
  timer: ReturnType<typeof setTimeout> | undefined;

  constructor(chosen: Chosen, origin: Origin, push: (member: Member, lines: readonly Line[]) => void) {
    this.key = chosen.key;
    this.serverId = chosen.serverId;
    this.source = chosen.source;
    this.origin = origin;
    this.feed = new Feed(chosen.serverId, chosen.source, TAIL, { push: (lines) => push(this, lines) });
  }
}

export class Mix {
  members = $state.raw<readonly Member[]>([]);
  readonly #log: Log;
  readonly #merger = new Merger<Line>(WINDOW_MS);
  readonly #orders = new WeakMap<Line, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Follows these logs: what is new is opened, what is gone is closed, and its lines leave. */
  set(chosen: readonly Chosen[], originOf: (one: Chosen) => Origin, offsetOf: (serverId: string) => number): void {
    const before = new Map(untrack(() => this.members).map((member) => [member.key, member]));
    const next = chosen.map((one) => {
      const origin = originOf(one);
      const known = before.get(one.key);
      const member = known ?? new Member(one, origin, (own, lines) => this.#push(own, lines));
      // Lines have the object itself: another name is theirs at once.
      Object.assign(member.origin, origin);
      member.offsetMs = offsetOf(one.serverId);
      before.delete(one.key);
      return member;
    });
    for (const gone of before.values()) this.#end(gone);
    const added = next.filter((member) => !untrack(() => this.members).includes(member));
    this.members = next;
    if (before.size > 0) this.#resort([], new Set(before.keys()));
    for (const member of added) member.feed.start();
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const member of untrack(() => this.members)) this.#end(member);
    this.members = [];
  }

  #end(member: Member): void {
    clearTimeout(member.timer);
    member.first = null;
    member.feed.close();
  }

  #push(member: Member, lines: readonly Line[]): void {
    const now = clock.present();
    for (const line of lines) {
      line.origin = member.origin;
      const at = line.kind === 'line' ? line.at : null;
      // What comes now without a time was written now.
      const order = at === null ? now : at - member.offsetMs;
      this.#orders.set(line, order);
      if (line.kind === 'line') member.count += 1;
      const mayBeRest = member.count <= TAIL && now < member.restUntil;
      if (mayBeRest && order < this.#merger.last) member.first ??= [];
      if (member.first) member.first.push(line);
      else if (this.#merger.add(line, order, now) && line.kind === 'line') member.late += 1;
    }
    if (member.first) {
      // The rest is not waited for any longer than that: new lines may follow it at once.
      const isRest = member.restUntil !== Infinity;
      if (!isRest) clearTimeout(member.timer);
      if (member.count >= TAIL) this.#settle(member);
      else if (!isRest || member.timer === undefined) member.timer = setTimeout(() => this.#settle(member), SETTLED_MS);
    }
    if (!this.#merger.isEmpty) this.#timer ??= setTimeout(() => this.#turn(), TURN_MS);
  }

  /** The lines from before are there: they go to their places among those of the other logs. */
  #settle(member: Member): void {
    clearTimeout(member.timer);
    member.timer = undefined;
    const { first } = member;
    member.first = null;
    member.restUntil = Math.min(member.restUntil, clock.present() + REST_MS);
    if (!first || first.length === 0) return;
    // A line from before without a time stands behind the one before it: those at the beginning, at the first time there is.
    const isTimed = (line: Line) => line.kind === 'line' && line.at !== null;
    const begin = first.find(isTimed);
    let order = (begin && this.#orders.get(begin)) ?? clock.present();
    for (const line of first) {
      if (isTimed(line)) order = this.#orders.get(line) ?? order;
      else this.#orders.set(line, order);
    }
    this.#resort(first, new Set());
  }

  #turn(): void {
    this.#timer = undefined;
    const lines = this.#merger.take(clock.present());
    if (lines.length > 0) this.#log.push(lines);
    if (!this.#merger.isEmpty) this.#timer = setTimeout(() => this.#turn(), TURN_MS);
  }

  /** Puts all lines in order once more, with these and without those of some logs. */
  #resort(more: readonly Line[], without: ReadonlySet<string>): void {
    const { lines } = this.#log;
    const held = [...lines.between(lines.first, lines.end), ...this.#merger.drain(), ...more];
    const kept = held.filter((line) => !line.origin || !without.has(line.origin.key));
    const order = (line: Line) => this.#orders.get(line) ?? 0;
    // Those of the same time stay as they came.
    kept.sort((a, b) => order(a) - order(b));
    const last = kept.at(-1);
    this.#merger.restart(last ? order(last) : -Infinity);
    this.#log.replace(kept);
  }
}

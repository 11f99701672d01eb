// What a new rollout would do: which servers are in which wave, which are left out and why, and what is sent. Pure.
import * as m from '#messages/updates';
import type { RolloutIn, UpdatableServer } from '../../../api/types';

/** The bounds of the service. */
export const MOST_WAVES = 10;
const MOST_TAGS = 20;
const MOST_PAUSE_MINUTES = 7 * 24 * 60;
const MOST_FAILED = 1_000;

/** Servers by what a rollout of the release does to them. */
export interface Sorted {
  /** They take it, in the wave that is for them. */
  takes: UpdatableServer[];
  /** They run it already. */
  current: UpdatableServer[];
  /** Their own policy refuses updates. */
  off: UpdatableServer[];
  /** No agent has ever connected. */
  unknown: UpdatableServer[];
}

export function sorted(servers: readonly UpdatableServer[]): Sorted {
  const found: Sorted = { takes: [], current: [], off: [], unknown: [] };
  for (const server of servers) found[kindOf(server)].push(server);
  return found;
}

function kindOf({ version, updates, is_current }: UpdatableServer): keyof Sorted {
  if (version === null || version === undefined) return 'unknown';
  if (is_current) return 'current';
  return updates === 'signed' ? 'takes' : 'off';
}

export interface Input {
  /** The tags of each wave. */
  waves: string[][];
  /** Whether a last wave is for all others. */
  others: boolean;
  /** What the fields say; not a number where they say none. */
  pauseMinutes: number | null | undefined;
  maxFailed: number | null | undefined;
}

/** What a wave is for, as the service has it: an empty list for all others. */
export function wavesOf({ waves, others }: Pick<Input, 'waves' | 'others'>): string[][] {
  return others ? [...waves, []] : waves;
}

/** The servers of each wave: a server belongs to the first that has one of its tags. `rest` are in none. */
export function reachOf<T>(
  waves: readonly string[][],
  servers: readonly T[],
  tagsOf: (server: T) => readonly string[],
  others: boolean,
): { waves: T[][]; rest: T[] } {
  const reached: T[][] = (others ? [...waves, []] : waves).map(() => []);
  const rest: T[] = [];
  for (const server of servers) {
    const tags = tagsOf(server);
    const place = waves.findIndex((wave) => wave.some((tag) => tags.includes(tag)));
    const wave = place >= 0 ? reached[place] : others ? reached.at(-1) : undefined;
    (wave ?? rest).push(server);
  }
  return { waves: reached, rest };
}

export interface Faults {
  /** Of the waves with tags, each in its place. */
  waves: (string | null)[];
  /** Of all of them. */
  list: string | null;
  pause: string | null;
  failed: string | null;
}

export function faultsOf(input: Input): Faults {
  const { waves, others, pauseMinutes, maxFailed } = input;
  return {
    waves: waves.map((tags) => (tags.length === 0 ? m.chooseTag() : tags.length > MOST_TAGS ? m.mostTags() : null)),
    list: waves.length === 0 && !others ? m.addOneWave() : null,
    pause: isWhole(pauseMinutes, MOST_PAUSE_MINUTES) ? null : m.faultPause(),
    failed: isWhole(maxFailed, MOST_FAILED) ? null : m.faultFailed(),
  };
}

function isWhole(value: number | null | undefined, most: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most;
}

export function isFaulty({ waves, list, pause, failed }: Faults): boolean {
  return [...waves, list, pause, failed].some((fault) => fault !== null);
}

export function bodyOf(input: Input): RolloutIn {
  return {
    waves: wavesOf(input).map((tags) => ({ tags })),
    pause_minutes: input.pauseMinutes ?? 0,
    max_failed: input.maxFailed ?? 0,
  };
}

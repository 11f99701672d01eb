// A rollout, its waves and its servers in words. Pure but for the language.
import * as m from '#messages/updates';
import { sentence } from '../../../api/failure';
import type { RolloutServer, RolloutSummary } from '../../../api/types';
import { list } from '../../../lib/format';
import type { Tone } from '../../../ui/Badge.svelte';

interface Said {
  label: () => string;
  tone: Tone;
}

export const STATUSES: Record<RolloutSummary['status'], Said> = {
  running: { label: m.running, tone: 'accent' },
  paused: { label: m.paused, tone: 'warn' },
  done: { label: m.done, tone: 'ok' },
  stopped: { label: m.stopped, tone: 'bad' },
  cancelled: { label: m.cancelled, tone: 'idle' },
};

type State = RolloutServer['state'];

export const STATES: Record<State, Said> = {
  waiting: { label: m.waiting, tone: 'idle' },
  offered: { label: m.offered, tone: 'accent' },
  updated: { label: m.updated, tone: 'ok' },
  failed: { label: m.failed, tone: 'bad' },
  refused: { label: m.refused, tone: 'warn' },
};

/** What somebody looks for first comes first. */
export const ORDER: State[] = ['failed', 'refused', 'offered', 'waiting', 'updated'];

const REFUSALS: Record<string, () => string> = {
  updates_off: m.refusedOff,
  unknown_signer: m.refusedSigner,
  malformed: m.refusedMalformed,
  not_newer: m.refusedNotNewer,
  no_build: m.refusedNoBuild,
  failed_before: m.refusedFailedBefore,
};

/** Why a server was not updated; null where there is nothing to say. */
export function reasonOf({ state, reason }: Pick<RolloutServer, 'state' | 'reason'>): string | null {
  const known = Object.hasOwn(REFUSALS, reason ?? '') ? REFUSALS[reason ?? ''] : undefined;
  if (state === 'refused') return (known ?? m.refusedOther)();
  return state === 'failed' && reason ? sentence(reason) : null;
}

export const isOpen = ({ status }: Pick<RolloutSummary, 'status'>) => status === 'running' || status === 'paused';

/** What a wave is for. */
export function waveName(tags: readonly string[]): string {
  return tags.length === 0 ? m.allOthers() : list([...tags], 'disjunction');
}

/** Where a wave is: over, at it, next in line, or never begun because the rollout ended before. */
export type Phase = 'done' | 'running' | 'paused' | 'next' | 'later' | 'ended' | 'skipped';

export const PHASES: Record<Phase, Said> = {
  done: { label: m.waveDone, tone: 'ok' },
  running: { label: m.running, tone: 'accent' },
  paused: { label: m.paused, tone: 'warn' },
  next: { label: m.waveNext, tone: 'idle' },
  later: { label: m.waveLater, tone: 'idle' },
  ended: { label: m.waveEnded, tone: 'idle' },
  skipped: { label: m.waveSkipped, tone: 'idle' },
};

export function phaseOf(
  rollout: Pick<RolloutSummary, 'status' | 'wave' | 'wave_since'>,
  index: number,
  now: number,
): Phase {
  if (rollout.status === 'done' || index < rollout.wave) return 'done';
  const hasBegun = index === rollout.wave && Date.parse(rollout.wave_since) <= now;
  if (rollout.status === 'stopped' || rollout.status === 'cancelled') return hasBegun ? 'ended' : 'skipped';
  if (rollout.status === 'paused' && index === rollout.wave) return 'paused';
  if (hasBegun) return 'running';
  return index === rollout.wave ? 'next' : 'later';
}

export type Counts = RolloutSummary['counts'];

export function countsOf(servers: readonly Pick<RolloutServer, 'state'>[]): Counts {
  const counts: Counts = { waiting: 0, offered: 0, updated: 0, failed: 0, refused: 0 };
  for (const { state } of servers) counts[state] += 1;
  return counts;
}

export function totalOf(counts: Counts): number {
  return counts.waiting + counts.offered + counts.updated + counts.failed + counts.refused;
}

/** `2 of 5 updated, 1 failed, 1 refused`. */
export function countWords(counts: Counts): string {
  return [
    m.updatedOf({ done: counts.updated, total: totalOf(counts) }),
    ...(counts.failed > 0 ? [m.failedCount({ count: counts.failed })] : []),
    ...(counts.refused > 0 ? [m.refusedCount({ count: counts.refused })] : []),
  ].join(', ');
}

import * as m from '#messages/commandParts';
import type { CommandStatus } from '../../../api/types';
import type { Tone } from '../../../ui/Badge.svelte';

export interface StatusWords {
  word: () => string;
  tone: Tone;
  /** What it means, where the word alone leaves a question. */
  meaning?: () => string;
}

export const statuses: Record<CommandStatus, StatusWords> = {
  queued: { word: m.queued, tone: 'idle', meaning: m.queuedMeaning },
  running: { word: m.running, tone: 'accent' },
  succeeded: { word: m.succeeded, tone: 'ok' },
  failed: { word: m.failed, tone: 'bad' },
  timed_out: {
    word: m.timedOut,
    tone: 'bad',
    meaning: m.timedOutMeaning,
  },
  cancelled: { word: m.cancelled, tone: 'idle' },
  lost: {
    word: m.lost,
    tone: 'warn',
    meaning: m.lostMeaning,
  },
  skipped: { word: m.skipped, tone: 'idle', meaning: m.skippedMeaning },
};

const SIGNALS: Record<number, string> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  6: 'SIGABRT',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
};

/** What a shell's exit code says beside its number. */
export function exitMeaning(code: number): string | null {
  if (code === 126) return m.notExecutable();
  if (code === 127) return m.notFound();
  return SIGNALS[code - 128] ?? null;
}

/** Whether a command may still change. */
export function isUnderWay(status: CommandStatus): boolean {
  return status === 'queued' || status === 'running';
}

import type { CommandStatus } from '../../../api/types';
import type { Tone } from '../../../ui/Badge.svelte';

export interface StatusWords {
  word: string;
  tone: Tone;
  /** What it means, where the word alone leaves a question. */
  meaning?: string;
}

export const statuses: Record<CommandStatus, StatusWords> = {
  queued: { word: 'Waiting', tone: 'idle', meaning: 'It waits for its turn in its batch.' },
  running: { word: 'Running', tone: 'accent' },
  succeeded: { word: 'Succeeded', tone: 'ok' },
  failed: { word: 'Failed', tone: 'bad' },
  timed_out: {
    word: 'Timed out',
    tone: 'bad',
    meaning: 'It took longer than its time limit: it and all that it had started were ended.',
  },
  cancelled: { word: 'Cancelled', tone: 'idle' },
  lost: {
    word: 'Lost',
    tone: 'warn',
    meaning:
      'It was sent to the server, and nobody knows what became of it: its agent ended before it could tell. It may have run, wholly or in part. It is not sent again by itself.',
  },
  skipped: { word: 'Skipped', tone: 'idle', meaning: 'Its batch stopped before its turn came: it did not run.' },
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
  if (code === 126) return 'cannot be executed';
  if (code === 127) return 'command not found';
  return SIGNALS[code - 128] ?? null;
}

/** Whether a command may still change. */
export function isUnderWay(status: CommandStatus): boolean {
  return status === 'queued' || status === 'running';
}

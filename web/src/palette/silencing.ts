import * as m from '#messages/palette';
import { api, take } from '../api/client';
import { failureOf } from '../api/failure';
import type { Silence } from '../api/types';
import { minuteOf } from '../lib/times';
import { clock } from '../live/clock.svelte';
import { bodyOf, newDraft } from '../pages/alerts/silence';
import { toasts } from '../ui/toasts.svelte';

export interface Silencing {
  /** The server or the tag in words. */
  what: string;
  serverId: string | null;
  tag: string | null;
  minutes: number;
}

/** Silences a server or a tag from now on, says until when, and takes it back when that was not meant. */
export async function silence({ what, serverId, tag, minutes }: Silencing): Promise<void> {
  const reach = tag === null ? ('server' as const) : ('tag' as const);
  const draft = { ...newDraft(serverId), reach, tag: tag ?? '', lasts: minutes, reason: m.reason() };
  const now = clock.present();
  try {
    const made = await take(api.POST('/api/v1/alerts/silences', { body: bodyOf(draft, now) }));
    const time = minuteOf(made.ends_at ?? now + minutes * 60_000, now);
    toasts.done(m.silenced({ what, time }), { text: m.undo(), act: () => void undo(made, what) });
  } catch (error) {
    toasts.failed(failureOf(error).message);
  }
}

async function undo({ id }: Silence, what: string): Promise<void> {
  try {
    await take(api.DELETE('/api/v1/alerts/silences/{id}', { params: { path: { id } } }));
    toasts.done(m.undone({ what }));
  } catch (error) {
    toasts.failed(failureOf(error).message);
  }
}

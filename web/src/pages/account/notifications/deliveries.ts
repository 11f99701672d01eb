import * as m from '#messages/channels';
import type { Delivery } from '../../../api/types';
import type { Tone } from '../../../ui/Badge.svelte';

export type DeliveryStatus = Delivery['status'];

export const STATUSES: { status: DeliveryStatus; label: () => string }[] = [
  { status: 'pending', label: m.statusPending },
  { status: 'sent', label: m.statusSent },
  { status: 'failed', label: m.statusFailed },
];

/** What a message reports: the beginning of an alert, that it is still there, its end, or nothing but a test, which says so itself. */
export const eventWords: Record<Delivery['event'], (() => string) | null> = {
  triggered: m.began,
  reminder: m.stillThere,
  resolved: m.over,
  test: null,
};

/** What it says, as a line begins. */
export function subjectOf(delivery: Pick<Delivery, 'subject'>): string {
  return delivery.subject.charAt(0).toUpperCase() + delivery.subject.slice(1);
}

/** Where a message stands, in words and a colour. One that waits for its first try is no trouble. */
export function standing(delivery: Pick<Delivery, 'status' | 'attempts'> & Partial<Pick<Delivery, 'outcome'>>): {
  label: string;
  tone: Tone;
} {
  if (delivery.outcome === 'partly_delivered') return { label: m.partlySent(), tone: 'warn' };
  if (delivery.outcome === 'perhaps_delivered') return { label: m.possiblySent(), tone: 'warn' };
  if (delivery.status === 'sent') return { label: m.sent(), tone: 'ok' };
  if (delivery.status === 'failed') return { label: m.notSent(), tone: 'bad' };
  return delivery.attempts > 0 ? { label: m.retrying(), tone: 'warn' } : { label: m.onItsWay(), tone: 'accent' };
}

/** When it is tried the next time, from now: `in 40 s`. */
export function untilNext(at: string, now: number): string {
  const seconds = Math.round((Date.parse(at) - now) / 1000);
  if (seconds <= 0) return m.now();
  if (seconds < 60) return m.inSeconds({ count: seconds });
  if (seconds < 3600) return m.inMinutes({ count: Math.round(seconds / 60) });
  return m.inHours({ count: Math.round(seconds / 3600) });
}

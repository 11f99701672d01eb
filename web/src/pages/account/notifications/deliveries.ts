import type { Delivery } from '../../../api/types';
import type { Tone } from '../../../ui/Badge.svelte';

export type DeliveryStatus = Delivery['status'];

export const STATUSES: { status: DeliveryStatus; label: string }[] = [
  { status: 'pending', label: 'On their way' },
  { status: 'sent', label: 'Sent' },
  { status: 'failed', label: 'Not sent' },
];

/** What was told: the beginning of an alert, that it is still there, its end, or nothing but a test, which says so itself. */
export const eventWords: Record<Delivery['event'], string | null> = {
  triggered: 'began',
  reminder: 'still there',
  resolved: 'over',
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
  if (delivery.outcome === 'partly_delivered') return { label: 'partly sent', tone: 'warn' };
  if (delivery.outcome === 'perhaps_delivered') return { label: 'possibly sent', tone: 'warn' };
  if (delivery.status === 'sent') return { label: 'sent', tone: 'ok' };
  if (delivery.status === 'failed') return { label: 'not sent', tone: 'bad' };
  return delivery.attempts > 0 ? { label: 'trying again', tone: 'warn' } : { label: 'on its way', tone: 'accent' };
}

/** When it is tried the next time, from now: `in 40 s`. */
export function untilNext(at: string, now: number): string {
  const seconds = Math.round((Date.parse(at) - now) / 1000);
  if (seconds <= 0) return 'now';
  if (seconds < 60) return `in ${seconds} s`;
  if (seconds < 3600) return `in ${Math.round(seconds / 60)} min`;
  return `in ${Math.round(seconds / 3600)} h`;
}

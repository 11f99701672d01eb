import type { Alert } from '../../api/types';
import { worstFirst } from '../../live/alerts.svelte';

/** As many as are read at a glance; the page of alerts has the others. */
const MOST = 4;

/** Which of the open alerts are shown, the worst first. The one with the focus stays, also when it is resolved. */
export function glance(open: readonly Alert[], focused: Alert | null): Alert[] {
  const first = open.length > MOST ? open.slice(0, MOST - 1) : [...open];
  if (!focused || first.some(({ id }) => id === focused.id)) return first;
  const kept = open.find(({ id }) => id === focused.id) ?? { ...focused, status: 'resolved' as const };
  return [...first, kept].sort(worstFirst);
}

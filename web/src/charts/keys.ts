import { firstFrom, nearest } from './gaps';
import type { ChartGroup } from './group.svelte';

export interface Place {
  /** Where the cursor is. */
  present: number;
  /** The places that are shown: from this one, and before that one. */
  from: number;
  until: number;
  /** How far an arrow goes. */
  stride: number;
  /** The cursor is not shown yet: it begins where it is. */
  isAway: boolean;
}

/** Where a key moves the cursor; null for keys that do not. */
export function placeAfter(key: string, { present, from, until, stride, isAway }: Place): number | null {
  const page = Math.ceil((until - from) / 10);
  const moves: Record<string, number> = {
    ArrowLeft: isAway ? present : present - stride,
    ArrowRight: present + stride,
    PageUp: present - page,
    PageDown: present + page,
    Home: from,
    End: until - 1,
  };
  const place = moves[key];
  return place === undefined ? null : Math.min(until - 1, Math.max(from, place));
}

/** What a key does on a chart: arrows move the cursor from point to point, Enter keeps it, Escape puts it away, + and - zoom. */
export function pressed(
  event: KeyboardEvent,
  group: ChartGroup,
  times: number[],
  zoom: (factor: number, about: number) => void,
): void {
  const { span } = group;
  const from = firstFrom(times, span.from);
  const until = firstFrom(times, span.to + 1);
  if (until <= from || event.ctrlKey || event.metaKey || event.altKey) return;
  const present = group.at === null ? until - 1 : (nearest(times, group.at) ?? until - 1);
  const stride = event.shiftKey ? 10 : 1;
  const place = placeAfter(event.key, { present, from, until, stride, isAway: group.cursor === null });
  if (place !== null) {
    group.owner = null;
    group.cursor = times[place] ?? null;
  } else if (event.key === 'Enter' && group.cursor !== null) group.pin(group.cursor);
  else if (event.key === 'Escape' && (group.cursor !== null || group.pinned !== null)) {
    group.cursor = null;
    group.pin(null);
  } else if (event.key === '+') zoom(0.5, group.at ?? (span.from + span.to) / 2);
  else if (event.key === '-') zoom(2, group.at ?? (span.from + span.to) / 2);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

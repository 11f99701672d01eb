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

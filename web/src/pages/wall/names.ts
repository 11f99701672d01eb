// Names on small tiles: what all of them share is left out, so that what is left tells them apart.

/** Where a name may be cut: after one of these. */
const SEPARATORS = /[-._ :/]/;

/** Fewer characters are not worth leaving out. */
const LEAST = 3;

/** A name as it is shown: the end is never cut, what stands before it is where there is no room. */
export interface ShownName {
  head: string;
  tail: string;
}

/** As many characters of the end stay at most. */
const TAIL = 8;

/** How long the beginning is that all names share, up to the end of a part of it. None is left empty. */
export function sharedLength(names: readonly string[]): number {
  const [first, ...others] = names;
  if (first === undefined || others.length === 0) return 0;
  let length = Math.min(...names.map((name) => name.length - 1));
  for (const name of others) {
    let same = 0;
    while (same < length && name[same] === first[same]) same += 1;
    length = same;
  }
  // Digits that happen to be the same belong to the number, and a word is not cut in two.
  while (length > 0 && !SEPARATORS.test(first[length - 1] ?? '') && !endsWord(names, length)) length -= 1;
  return length;
}

/** Whether letters end and digits begin there in every name: `web` and `1`. */
function endsWord(names: readonly string[], length: number): boolean {
  return names.every((name) => /\p{L}/u.test(name[length - 1] ?? '') && /\d/.test(name[length] ?? ''));
}

/** The names for tiles that have room for so many characters. */
export function shownNames(names: readonly string[], room: number): ShownName[] {
  const isLong = names.some((name) => name.length > room);
  const before = isLong ? sharedLength(names) : 0;
  const after = isLong ? sharedLength(names.map(reversed)) : 0;
  return names.map((name) => {
    const start = before >= LEAST ? before : 0;
    const end = name.length - (after >= LEAST && start + after < name.length ? after : 0);
    const rest = name.slice(start, end);
    if (rest.length <= room) return { head: rest, tail: '' };
    const cut = rest.length - tailLength(rest, Math.min(TAIL, Math.floor(room / 2)));
    return { head: rest.slice(0, cut), tail: rest.slice(cut) };
  });
}

/** The last part of a name with its separator, where that is short, or so many characters. */
export function tailLength(name: string, most: number): number {
  for (let length = 2; length <= most; length += 1) {
    if (SEPARATORS.test(name.charAt(name.length - length))) return length;
  }
  return most;
}

function reversed(name: string): string {
  return [...name].reverse().join('');
}

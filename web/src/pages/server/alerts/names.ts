/** Whether a name is like a pattern, in which `*` stands for any characters and `?` for one. */
export function isLike(pattern: string, name: string): boolean {
  // What must come between the stars is looked for from left to right: what an earlier star takes is as good as any.
  const [first = '', ...rest] = pattern.split('*');
  const wanted = [...name];
  const at = (piece: string, from: number) =>
    [...piece].every((one, place) => from + place < wanted.length && (one === '?' || one === wanted[from + place]));
  if (!at(first, 0)) return false;
  let from = [...first].length;
  if (rest.length === 0) return from === wanted.length;
  const last = rest.pop() ?? '';
  for (const piece of rest) {
    while (from <= wanted.length && !at(piece, from)) from += 1;
    if (from > wanted.length) return false;
    from += [...piece].length;
  }
  const end = wanted.length - [...last].length;
  return end >= from && at(last, end);
}

// Which of two versions of the agent is the older one, by the rules of semver.org. Pure.

interface Version {
  numbers: number[];
  /** The parts of `-rc.1`; empty where it is no pre-release. */
  before: string[];
}

function read(text: string): Version | null {
  const [, numbers, before] =
    /^(\d{1,9}\.\d{1,9}\.\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/.exec(text) ?? [];
  if (!numbers) return null;
  return { numbers: numbers.split('.').map(Number), before: before?.split('.') ?? [] };
}

/** Negative where `one` is the older part of a pre-release: numbers before words. */
function comparePart(one: string, other: string): number {
  const [a, b] = [one, other].map((part) => (/^\d+$/.test(part) ? Number(part) : null)) as [
    number | null,
    number | null,
  ];
  if (a !== null && b !== null) return a - b;
  if (a !== null || b !== null) return a !== null ? -1 : 1;
  return one < other ? -1 : one > other ? 1 : 0;
}

function compareBefore(one: string[], other: string[]): number {
  if (one.length === 0 || other.length === 0) return other.length - one.length;
  for (const [index, part] of one.entries()) {
    const against = other[index];
    if (against === undefined) return 1;
    const order = comparePart(part, against);
    if (order !== 0) return order;
  }
  return one.length - other.length;
}

/** Whether the first version is older; false where one of them is no version. */
export function isOlder(one: string, other: string): boolean {
  const [a, b] = [read(one), read(other)];
  if (!a || !b) return false;
  for (const [index, number] of a.numbers.entries()) {
    const difference = number - (b.numbers[index] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return compareBefore(a.before, b.before) < 0;
}

/** All pages with the id, heading and text of each section: one file, which the browser asks for when somebody searches. */
export type HelpIndex = { address: string; title: string; sections: [id: string, heading: string, text: string][] }[];

export interface Hit {
  address: string;
  page: string;
  /** Empty for what stands before the first heading. */
  heading: string;
  excerpt: Piece[];
}

/** A piece of an excerpt, and whether it is what was searched. */
export interface Piece {
  text: string;
  isMatch: boolean;
}

interface Entry {
  address: string;
  page: string;
  heading: string;
  text: string;
  /** The same in lower case, with one space between words. */
  words: { page: string; heading: string; text: string };
}

/** Hits that anybody looks at. */
const MAX_HITS = 20;
const EXCERPT_CHARS = 180;

/** What a field counts. */
const WEIGHTS = { page: 4, heading: 6, text: 1 };
/** A whole word counts more than a beginning, and that more than something inside of a word. */
const WHOLE = 1;
const BEGINNING = 0.7;
const INSIDE = 0.2;
const MIN_INSIDE_CHARS = 3;

/** Words of questions that say nothing about the answer. */
const SMALL = new Set(
  'a an and are as at be by can do does for from how i in is it my of on or the this to we what when where which why with'.split(
    ' ',
  ),
);

/** Finds sections of the help. It looks through all text: so small that an index of words would only cost bytes. */
export class Finder {
  readonly #entries: Entry[];

  constructor(index: HelpIndex) {
    this.#entries = index.flatMap(({ address, title, sections }) =>
      sections.map(([id, heading, text]) => ({
        address: id ? `${address}#${id}` : address,
        page: title,
        heading,
        text,
        words: { page: simple(title), heading: simple(heading), text: simple(text) },
      })),
    );
  }

  /** The best hits first. If some sections have all words, only those. */
  find(query: string): Hit[] {
    const words = wordsOf(query);
    if (words.length === 0) return [];
    const grades = this.#entries.map((entry) => words.map((word) => gradeOf(entry, word)));
    // A word that few sections have says more.
    const rarity = words.map((_, at) => {
      const having = grades.filter((grade) => (grade[at] ?? 0) > 0).length;
      return Math.log(1 + this.#entries.length / (1 + having));
    });
    const scored = this.#entries.map((entry, at) => {
      const grade = grades[at] ?? [];
      const matched = grade.filter((one) => one > 0).length;
      const sum = grade.reduce((total, one, word) => total + one * (rarity[word] ?? 0), 0);
      return { entry, matched, score: sum * (matched / words.length) ** 3 * phraseBonus(entry, words) };
    });
    const most = Math.max(0, ...scored.map(({ matched }) => matched));
    return scored
      .filter(({ matched }) => matched > 0 && (most < words.length || matched === most))
      .sort((one, other) => other.score - one.score)
      .slice(0, MAX_HITS)
      .map(({ entry: { address, page, heading, text } }) => ({
        address,
        page,
        heading,
        excerpt: excerptOf(text, words),
      }));
  }
}

/** The words of a query that count; all, if none does. */
export function wordsOf(query: string): string[] {
  const all = simple(query).split(' ').filter(Boolean);
  const telling = all.filter((word) => !SMALL.has(word));
  return [...new Set(telling.length > 0 ? telling : all)];
}

function simple(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

function gradeOf({ words }: Entry, word: string): number {
  return (
    WEIGHTS.page * gradeIn(words.page, word) +
    WEIGHTS.heading * gradeIn(words.heading, word) +
    WEIGHTS.text * gradeIn(words.text, word)
  );
}

function gradeIn(text: string, word: string): number {
  const grade = gradeOfForm(text, word);
  const isPlural = word.length > 3 && word.endsWith('s');
  return grade === 0 && isPlural ? gradeOfForm(text, word.slice(0, -1)) : grade;
}

function gradeOfForm(text: string, word: string): number {
  let best = 0;
  let count = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
    const begins = at === 0 || text[at - 1] === ' ';
    const ends = at + word.length === text.length || text[at + word.length] === ' ';
    if (!begins && word.length < MIN_INSIDE_CHARS) continue;
    count += 1;
    best = Math.max(best, begins ? (ends ? WHOLE : BEGINNING) : INSIDE);
  }
  return count > 0 ? best * (1 + Math.log(count)) : 0;
}

/** Words that stand together as they were typed are what was meant: `host_not_allowed`. */
function phraseBonus({ words }: Entry, query: string[]): number {
  const phrase = query.join(' ');
  if (query.length < 2) return 1;
  return words.heading.includes(phrase) || words.text.includes(phrase) ? 2 : 1;
}

/** The part of a text that has most of the words, with what matches in pieces of its own. */
export function excerptOf(text: string, words: string[]): Piece[] {
  const pattern = new RegExp(words.map(patternOf).join('|'), 'giu');
  const matches = [...text.matchAll(pattern)];
  const start = startOf(text, matches);
  const end = text.length - start <= EXCERPT_CHARS ? text.length : text.lastIndexOf(' ', start + EXCERPT_CHARS);
  const pieces: Piece[] = [];
  let at = start;
  const add = (piece: string, isMatch: boolean) => piece && pieces.push({ text: piece, isMatch });
  for (const match of matches.filter(({ index }) => index >= start && index < end)) {
    add(text.slice(at, match.index), false);
    add(match[0], true);
    at = match.index + match[0].length;
  }
  add(text.slice(at, Math.max(at, end)), false);
  if (start > 0) pieces.unshift({ text: '… ', isMatch: false });
  if (end < text.length) pieces.push({ text: ' …', isMatch: false });
  return pieces;
}

/** Where the window begins that has most different words: at a word, a little before the first of them. */
function startOf(text: string, matches: RegExpExecArray[]): number {
  const within = (from: number) =>
    new Set(
      matches
        .filter(({ index }) => index >= from && index < from + EXCERPT_CHARS - 40)
        .map(([word]) => word.toLowerCase()),
    ).size;
  const best = matches.reduce<{ index: number; count: number } | null>((so, { index }) => {
    const count = within(index);
    return so && so.count >= count ? so : { index, count };
  }, null);
  if (!best || best.index < 40) return 0;
  return text.lastIndexOf(' ', best.index - 30) + 1;
}

/** A word has letters and digits alone. Short ones are marked where words begin. */
function patternOf(word: string): string {
  const isPlural = word.length > 3 && word.endsWith('s');
  if (isPlural) return `${word}|${word.slice(0, -1)}`;
  return word.length < MIN_INSIDE_CHARS ? `(?<![\\p{L}\\p{N}])${word}` : word;
}

// How well a text fits what was typed: letters in their order, best at the beginnings of words and side by side.

export interface Fit {
  score: number;
  /** Which characters of the text fit. */
  at: number[];
}

const SIDE_BY_SIDE = 8;
const WORD_BEGINS = 10;
const TEXT_BEGINS = 6;
/** What a letter that is left out costs. A long way costs no more than this many. */
const GAP = 1;
const MAX_GAPS = 6;

const isWordBegin = (text: string, index: number) =>
  index === 0 || (/[^\p{L}\p{N}]/u.test(text[index - 1] ?? '') && /[\p{L}\p{N}]/u.test(text[index] ?? ''));

/** Letters as they are compared: without case and accents, and as many as before. */
export function plain(text: string): string {
  return [...text].map((letter) => plainLetter(letter)).join('');
}

function plainLetter(letter: string): string {
  const bare = letter.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
  return bare.length === letter.length ? bare : letter.toLowerCase().slice(0, letter.length).padEnd(letter.length);
}

/** How a word fits a text; null where a letter is missing. Both are `plain`. */
export function fitWord(word: string, text: string): Fit | null {
  const whole = text.indexOf(word);
  if (whole >= 0) return wholeFit(word, text, whole);
  let best: Fit | null = null;
  // Each place where it could begin is tried, so that an early letter somewhere does not spoil a good fit later.
  for (let begin = text.indexOf(word[0] ?? ''); begin >= 0; begin = text.indexOf(word[0] ?? '', begin + 1)) {
    const fit = fitFrom(word, text, begin);
    if (!fit) break;
    if (!best || fit.score > best.score) best = fit;
  }
  return best;
}

/** The word stands in the text: at the beginning of a word if there is such a place. */
function wholeFit(word: string, text: string, first: number): Fit {
  let begin = first;
  for (let at = first; at >= 0; at = text.indexOf(word, at + 1)) {
    if (!isWordBegin(text, at)) continue;
    begin = at;
    break;
  }
  const isExact = word.length === text.length ? TEXT_BEGINS : 0;
  const score =
    word.length * SIDE_BY_SIDE +
    (isWordBegin(text, begin) ? WORD_BEGINS : 0) +
    (begin === 0 ? TEXT_BEGINS : 0) +
    isExact;
  return { score, at: [...word].map((_, index) => begin + index) };
}

function fitFrom(word: string, text: string, begin: number): Fit | null {
  const at: number[] = [];
  let score = begin === 0 ? TEXT_BEGINS : 0;
  let next = begin;
  for (const letter of word) {
    const found = text.indexOf(letter, next);
    if (found < 0) return null;
    // The same letter at the beginning of a later word is meant where it is near: `dp` is `db-primary`.
    const begun = beginOf(letter, text, found);
    const index = begun ?? found;
    if (at.length > 0 && index === (at.at(-1) ?? 0) + 1) score += SIDE_BY_SIDE;
    else if (at.length > 0) score -= Math.min(index - (at.at(-1) ?? 0) - 1, MAX_GAPS) * GAP;
    if (isWordBegin(text, index)) score += WORD_BEGINS;
    at.push(index);
    next = index + 1;
  }
  return { score, at };
}

function beginOf(letter: string, text: string, from: number): number | null {
  if (isWordBegin(text, from)) return from;
  for (let at = text.indexOf(letter, from + 1); at >= 0 && at - from <= MAX_GAPS * 2; at = text.indexOf(letter, at + 1))
    if (isWordBegin(text, at)) return at;
  return null;
}

/** What each word that was typed adds where it fits only what is beside the text: a host, a tag. */
const BESIDE = 0.6;

/**
 * How everything that was typed fits a text and what is beside it; null where one of its words fits nowhere. What was typed
 * is taken word by word, in any order.
 */
export function fit(typed: string, text: string, beside: readonly string[] = []): Fit | null {
  const words = plain(typed).split(/\s+/).filter(Boolean);
  const own = plain(text);
  const others = beside.map(plain);
  const all: Fit = { score: 0, at: [] };
  for (const word of words) {
    const inText = fitWord(word, own);
    // Beside the text, letters that are far from each other mean nothing.
    const inOthers = others.filter((other) => other.includes(word)).map((other) => fitWord(word, other)?.score ?? 0);
    const besideScore = Math.max(0, ...inOthers) * BESIDE;
    if (!inText && besideScore === 0) return null;
    all.score += Math.max(inText?.score ?? -Infinity, besideScore);
    if (inText && inText.score >= besideScore) all.at.push(...inText.at);
  }
  // Of two that fit alike the shorter one is nearer.
  all.score -= own.length / 100;
  return { score: all.score, at: [...new Set(all.at)].sort((a, b) => a - b) };
}

/** A text in pieces: which fit what was typed, and which do not. */
export function pieces(text: string, at: readonly number[]): { text: string; fits: boolean }[] {
  const found: { text: string; fits: boolean }[] = [];
  const fitting = new Set(at);
  for (let index = 0; index < text.length; index += 1) {
    const fits = fitting.has(index);
    const last = found.at(-1);
    if (last?.fits === fits) last.text += text[index];
    else found.push({ text: text[index] ?? '', fits });
  }
  return found;
}

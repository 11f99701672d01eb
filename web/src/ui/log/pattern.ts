// What is searched for in lines that are held: text as it is, or a regular expression. Pure.
import * as m from '#messages/log';
import type { Range } from './ansi';

export type Compiled = { pattern: RegExp; fault: null } | { pattern: null; fault: string };

/** In either case unless it has a capital letter, as the service searches. */
export function compile(text: string, isRegex: boolean): Compiled {
  const source = isRegex ? text : text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  // A capital behind a backslash is a class of characters: \S, \W.
  const hasCapital = /\p{Lu}/u.test(isRegex ? text.replace(/\\[^]/g, '') : text);
  try {
    return { pattern: new RegExp(source, hasCapital ? 'g' : 'gi'), fault: null };
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^Invalid regular expression: /, '') : String(error);
    return { pattern: null, fault: m.noPattern({ reason: reason.replace(/^\/[^]*\/[a-z]*: /, '') }) };
  }
}

/** More finds in one line tell nobody anything. */
const MOST_RANGES = 200;

/** Where a line has it. What matches nothing at all, as `x*` does, is no find. */
export function find(pattern: RegExp, text: string): Range[] {
  const found: Range[] = [];
  pattern.lastIndex = 0;
  for (;;) {
    const match = pattern.exec(text);
    if (!match || found.length === MOST_RANGES) return found;
    if (match[0] === '') pattern.lastIndex += 1;
    else found.push([match.index, match.index + match[0].length]);
  }
}

/** What the worker says when it has begun. */
export const READY = 'ready';

/** Lines of one question to the worker, and what it answers. */
export interface Question {
  search: number;
  source: string;
  flags: string;
  texts: string[];
}

export interface Answer {
  search: number;
  /** Which of the texts have it, in order; those that took long as their complement (`~index`). */
  hits: number[];
}

/** A line that takes longer is not searched a second time on the page, where it would be felt. */
const SLOW_MS = 2;

export function answer(question: Question): Answer {
  const pattern = new RegExp(question.source, question.flags.replace('g', ''));
  const hits: number[] = [];
  for (const [index, text] of question.texts.entries()) {
    const began = performance.now();
    if (pattern.test(text)) hits.push(performance.now() - began > SLOW_MS ? ~index : index);
  }
  return { search: question.search, hits };
}

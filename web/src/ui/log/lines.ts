// The lines of a log that a page holds: a ring, so that a log that never ends takes a bounded memory. Pure.
import { rewritten, strip } from './ansi';
import { timeOf } from './structured';

/** `dropped` and `lost` stand where lines are missing, `note` where the log itself has something to say. */
export type LineKind = 'line' | 'dropped' | 'lost' | 'note';

/** Which of several logs a line is of, where they are shown together. */
export interface Origin {
  key: string;
  /** Short enough to stand before each line. */
  name: string;
  serverId: string;
  /** The name of a colour: `--series-1`. */
  colour: string;
}

export interface Line {
  kind: LineKind;
  /** When it was written, in milliseconds; null where that is not known. */
  at: number | null;
  /** `stdout`, `stderr`, or which program; null where there is only one. */
  stream: string | null;
  /** As it was written, with its colours. */
  text: string;
  /** As it is read, searched and copied. */
  plain: string;
  /** Only where several logs are shown together. */
  origin?: Origin;
}

/** A line as the service tells it. */
export interface ToldLine {
  timestamp?: string | null;
  stream?: string | null;
  message: string;
}

export const MOST_LINES = 100_000;
/** Lines may be long: at most so many characters are held, which is as many bytes for most logs. */
export const MOST_CHARACTERS = 32_000_000;

export function lineOf(told: ToldLine): Line {
  const text = rewritten(told.message);
  const plain = strip(text);
  const at = told.timestamp ? Date.parse(told.timestamp) : Number.NaN;
  // Agents know the time of a line of a file where it begins with one.
  return { kind: 'line', at: Number.isNaN(at) ? timeOf(plain) : at, stream: told.stream ?? null, text, plain };
}

export function note(kind: Exclude<LineKind, 'line'>, text: string, at: number | null = null): Line {
  return { kind, at, stream: null, text, plain: text };
}

/** Every line has a number that stays its own: the first that ever came is 0. */
export class Lines {
  /** The number of the oldest line held, and of the next one. */
  first = 0;
  end = 0;
  characters = 0;
  readonly capacity: number;
  readonly #mostCharacters: number;
  readonly #slots: (Line | undefined)[];

  constructor(capacity = MOST_LINES, mostCharacters = MOST_CHARACTERS) {
    this.capacity = capacity;
    this.#mostCharacters = mostCharacters;
    this.#slots = [];
  }

  get count(): number {
    return this.end - this.first;
  }

  push(line: Line): void {
    if (this.count === this.capacity) this.#shift();
    this.#slots[this.end % this.capacity] = line;
    this.end += 1;
    this.characters += line.text.length;
    while (this.characters > this.#mostCharacters && this.count > 1) this.#shift();
  }

  get(number: number): Line | undefined {
    return number >= this.first && number < this.end ? this.#slots[number % this.capacity] : undefined;
  }

  /** The lines from a number up to, but without, another. */
  *between(from: number, to: number): Generator<Line> {
    for (let number = Math.max(from, this.first); number < Math.min(to, this.end); number += 1) {
      const line = this.get(number);
      if (line) yield line;
    }
  }

  /** Numbers continue, so that nothing that was remembered of a line means another one. */
  clear(): void {
    this.first = this.end;
    this.characters = 0;
    this.#slots.length = 0;
  }

  #shift(): void {
    const slot = this.first % this.capacity;
    this.characters -= this.#slots[slot]?.text.length ?? 0;
    this.#slots[slot] = undefined;
    this.first += 1;
  }
}

/** After a connection was lost, the service sends the last lines once more: which of them are held already. */
export class Repetition {
  readonly coming: Line[] = [];
  readonly #held: readonly Line[];
  /** Where in what is held the lines that came may begin, the earliest first. */
  #starts: number[];

  constructor(held: readonly Line[]) {
    this.#held = held;
    this.#starts = [...held.keys()];
  }

  /** Takes a line that came. */
  push(line: Line): void {
    const place = this.coming.length;
    this.coming.push(line);
    this.#starts = this.#starts.filter((start) => {
      const held = this.#held[start + place];
      return !held || isSame(held, line);
    });
  }

  /** Whether no line that is still to come can change how many are held. */
  get isOver(): boolean {
    const start = this.#starts[0];
    return start === undefined || start + this.coming.length >= this.#held.length;
  }

  /** How many of the first lines that came are held already: the longest end of what is held that they begin with. */
  get known(): number {
    const start = this.#starts.find((one) => one + this.coming.length >= this.#held.length);
    return start === undefined ? 0 : this.#held.length - start;
  }
}

function isSame(one: Line, other: Line): boolean {
  return one.at === other.at && one.stream === other.stream && one.text === other.text;
}

/** A line as text for the clipboard or a file. */
export function written(line: Line, how: { times: boolean }): string {
  const origin = line.origin ? `${line.origin.name} ` : '';
  if (line.kind !== 'line') return `--- ${origin}${line.plain} ---`;
  const time = how.times && line.at !== null ? `${new Date(line.at).toISOString()} ` : '';
  const stream = line.stream && line.stream !== 'stdout' ? `[${line.stream}] ` : '';
  return time + origin + stream + line.plain;
}

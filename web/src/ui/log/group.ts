// Which lines continue the one before them: stack traces, and what else one program wrote at once. Pure.
import type { Line } from './lines';

/** Lines of one cause are written at once. */
const TOGETHER_MS = 2_000;
/** A program that indents everything writes no endless line. */
const MOST_LINES = 1_000;

/** What continues whatever stands before it. */
const CONTINUES =
  /^(?:Caused by: |Suppressed: |\.\.\. \d{1,6} (?:more|common)|at [\w$.<]|During handling of the above|The above exception was|Traceback \(most recent call last\)|goroutine \d{1,9} \[|--- End of |note: run with `RUST_BACKTRACE)/;
/** PostgreSQL says the rest of an error in lines of their own, each with a time. */
const DETAIL =
  /^\d{4}-\d\d-\d\d [\d:.]{8,15} [^[]{0,40}\[\d{1,10}\][^:]{0,80} (?:DETAIL|HINT|STATEMENT|CONTEXT|QUERY): {2}/;
/** How a trace of Python ends, and a frame of Go begins: only within one. */
const WITHIN =
  /^(?:[\w.]{1,120}(?:Error|Exception|Warning|Interrupt|Exit)(?::|$)|[\w.*()/-]{1,200}\(.{0,200}\)$|[}\])]+[,;]?$)/;

const THROWN = /^[\w.$]{1,150}(?:Exception|Error|Throwable)(?:$|:)/;
const BAD = /\b(?:ERROR|WARN|WARNING|FATAL|SEVERE|CRITICAL|ERR)\b/i;
const AT_ONCE_MS = 50;

interface Open {
  head: number;
  /** What it says itself. */
  plain: string;
  length: number;
  at: number | null;
  stream: string | null;
}

/** Finds heads as lines come, of several logs that are mixed as well. */
export class Groups {
  readonly #open = new Map<string, Open>();

  /** The number of the line that this one continues: its own for one that stands for itself. */
  headOf(number: number, line: Line): number {
    const log = line.origin?.key ?? '';
    if (line.kind !== 'line') {
      this.#open.delete(log);
      return number;
    }
    const open = this.#open.get(log);
    if (open && isSame(open, line) && open.length < MOST_LINES && isMore(open, line)) {
      open.length += 1;
      open.at = line.at ?? open.at;
      return open.head;
    }
    this.#open.set(log, { head: number, plain: line.plain, length: 1, at: line.at, stream: line.stream });
    return number;
  }

  clear(): void {
    this.#open.clear();
  }
}

function isSame(open: Open, line: Line): boolean {
  if (open.stream !== line.stream) return false;
  return open.at === null || line.at === null || Math.abs(line.at - open.at) <= TOGETHER_MS;
}

function isMore(open: Open, line: Line): boolean {
  if (continues(line.plain, open.length > 1)) return true;
  // Loggers of Java write what was thrown into a line of its own, behind the one that says what went wrong.
  if (open.length > 1 || !THROWN.test(line.plain.slice(0, 200)) || !BAD.test(open.plain.slice(0, 200))) return false;
  return line.at === null || (open.at !== null && line.at - open.at <= AT_ONCE_MS);
}

/** Whether a line continues the one before; `isWithin`: which continues another one itself. */
export function continues(plain: string, isWithin: boolean): boolean {
  if (plain === '') return isWithin;
  const first = plain.charCodeAt(0);
  if (first === 9 || first === 32) return plain.trim() !== '' || isWithin;
  if (first === 0x7d || first === 0x5d || first === 0x29) return isWithin && WITHIN.test(plain);
  const head = plain.length > 500 ? plain.slice(0, 500) : plain;
  return CONTINUES.test(head) || (isWithin && WITHIN.test(head)) || (first >= 48 && first <= 57 && DETAIL.test(head));
}

// What tests of logs have in common.
import { lineOf, type Line } from './lines';
import { Log } from './log.svelte';

/** Lines with these texts; `text@1000` was written one second after the epoch. */
export function lines(...texts: string[]): Line[] {
  return texts.map((text) => {
    const [, message = text, at] = /^(.*)@(\d+)$/.exec(text) ?? [];
    return lineOf({
      message,
      stream: 'stdout',
      timestamp: at === undefined ? null : new Date(Number(at)).toISOString(),
    });
  });
}

export function log(capacity = 1_000): Log {
  return new Log(capacity);
}

/** The texts of its rows. */
export function rows(of: Log): string[] {
  const found: string[] = [];
  for (let row = of.rows.first; row < of.rows.end; row += 1) found.push(of.lines.get(of.rows.number(row))?.plain ?? '');
  return found;
}

// Sequences that say how often they are done. The emulator sets no bound, so that one of them can hold up the page for minutes.
import type { Terminal } from '@xterm/xterm';

/** As many rows and columns as a terminal has at most: more than that often, nothing changes any more. */
const MOST_TIMES = 1000;
/** After so many the page has a turn: a thousand of them take up to 0.2 s on a screen of 1000 rows. */
const MOST_AT_ONCE = 2000;

/** Insert and delete lines, scroll up and down, tabs forwards and backwards, repeat a character. */
const REPEATED = ['L', 'M', 'S', 'T', 'I', 'Z', 'b'];

/** Makes a terminal ignore what would be done too often, and pause between much that is allowed. */
export function boundRepeats({ parser }: Pick<Terminal, 'parser'>): void {
  let done = 0;
  for (const final of REPEATED)
    parser.registerCsiHandler({ final }, ([times]) => {
      if (typeof times !== 'number' || times > MOST_TIMES) return true;
      done += Math.max(1, times);
      if (done < MOST_AT_ONCE) return false;
      done = 0;
      return new Promise((resolve) => setTimeout(() => resolve(false)));
    });
}

/** Modes in which the mouse belongs to the program on the screen. */
const MOUSE = new Set([9, 1000, 1001, 1002, 1003, 1005, 1006, 1015, 1016]);

/** Leaves the mouse to the page: it selects text and scrolls, whatever the program wants. */
export function ignoreMouse({ parser }: Pick<Terminal, 'parser'>): void {
  parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) =>
    params.every((mode) => typeof mode === 'number' && MOUSE.has(mode)),
  );
}

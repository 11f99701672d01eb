// @vitest-environment node
import { Terminal } from '@xterm/xterm';
import { describe, expect, it } from 'vitest';
import { boundRepeats, ignoreMouse } from './bounds';

const ESC = '\x1b[';

function terminal() {
  const made = new Terminal({ cols: 20, rows: 5, allowProposedApi: true });
  const rows = () =>
    Array.from({ length: 5 }, (_, row) =>
      made.buffer.active.getLine(made.buffer.active.baseY + row)?.translateToString(true),
    );
  const write = (text: string) => new Promise<void>((done) => made.write(text, done));
  return { made, rows, write };
}

describe('a sequence that says how often', () => {
  it('is done as often as a screen has rows, and ignored where it says more', async () => {
    const { made, rows, write } = terminal();
    boundRepeats(made);

    await write(`a\r\nb\r\nc${ESC}1;1H${ESC}2L`);
    expect(rows()).toEqual(['', '', 'a', 'b', 'c']);
    await write(`${ESC}M`);
    expect(rows()).toEqual(['', 'a', 'b', 'c', '']);

    // Without a bound each of them takes minutes.
    for (const final of ['L', 'M', 'S', 'T', 'I', 'Z', 'b']) await write(`${ESC}2147483647${final}`);
    expect(rows()).toEqual(['', 'a', 'b', 'c', '']);
  });

  it('lets the page have its turn between many of them', async () => {
    const { made, rows, write } = terminal();
    boundRepeats(made);
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 0);

    await write(`a${ESC}1000L`.repeat(50) + `${ESC}2J${ESC}1;1Hend`);
    clearInterval(timer);

    expect(turns).toBeGreaterThan(5);
    expect(rows()[0]).toBe('end');
  });
});

it('the mouse stays with the page, and other modes are set', async () => {
  const { made, write } = terminal();
  ignoreMouse(made);

  await write(`${ESC}?1000h${ESC}?1002;1006h${ESC}?9h${ESC}?1003h${ESC}?2004h`);
  expect(made.modes.mouseTrackingMode).toBe('none');
  expect(made.modes.bracketedPasteMode).toBe(true);

  await write(`${ESC}?1049h`);
  expect(made.buffer.active.type).toBe('alternate');
});

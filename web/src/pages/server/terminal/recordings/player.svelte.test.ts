// @vitest-environment jsdom
import { expect, it } from 'vitest';
import type { CastEvent } from './cast';
import { Player } from './player.svelte';

const ESC = '\x1b[';

function player(...outputs: string[]) {
  const events: CastEvent[] = outputs.map((output, index) => ({ seconds: index, output }));
  const made = new Player({ size: { columns: 20, rows: 3 }, startedAt: null, by: null, events, unreadable: 0 });
  const buffer = () => made.terminal.buffer.active;
  const rows = () =>
    [0, 1, 2].map((row) =>
      buffer()
        .getLine(buffer().baseY + row)
        ?.translateToString(true),
    );
  return { made, rows };
}

it('begins again as a new terminal does, whatever the recording has left behind', async () => {
  const { made, rows } = player(
    'one\r\n',
    'two',
    `${ESC}20h${ESC}?12h${ESC}?25l${ESC}?1049hthree${ESC}31`,
    '\x1b]0;cut off',
  );
  made.seek(3);
  await expect.poll(() => made.terminal.options.convertEol).toBe(true);
  await expect.poll(() => rows().join('')).toContain('three');

  made.seek(1);

  await expect.poll(rows).toEqual(['one', 'two', '']);
  expect([made.terminal.options.convertEol, made.terminal.options.cursorBlink]).toEqual([false, false]);
  expect(made.terminal.buffer.active.type).toBe('normal');
});

it('scrolls where there is text to scroll back to, and never gives the mouse away', async () => {
  const { made } = player('one', `${ESC}?1000;1006h\r\n\r\n\r\n\r\nfive`, `${ESC}?1049h`);
  expect(made.canScroll).toBe(false);

  made.seek(1);
  await expect.poll(() => made.canScroll).toBe(true);
  made.seek(2);
  await expect.poll(() => made.canScroll).toBe(false);

  expect(made.terminal.modes.mouseTrackingMode).toBe('none');
});

import { describe, expect, it } from 'vitest';
import { Ansi } from './ansi';

const text = (ansi: Ansi, piece: string) =>
  ansi
    .read(piece)
    .map((part) => part.text)
    .join('');

describe('ansi', () => {
  it('keeps colours and gives the plain text', () => {
    expect(new Ansi().read('a \x1b[1;31mred\x1b[0m b')).toEqual([
      { text: 'a ', colour: null, bold: false },
      { text: 'red', colour: 1, bold: true },
      { text: ' b', colour: null, bold: false },
    ]);
  });

  it('continues a sequence that was cut between two pieces', () => {
    const ansi = new Ansi();

    expect(text(ansi, 'one\x1b[3')).toBe('one');
    expect(ansi.read('2mtwo')).toEqual([{ text: 'two', colour: 2, bold: false }]);
  });

  it('leaves out titles, links and what moves the cursor', () => {
    expect(text(new Ansi(), '\x1b]0;title\x07\x1b[2J\x1b[10;4Hx\x1b]8;;http://a\x1b\\y\x1b(B\x1b7z')).toBe('xyz');
  });

  it('takes a carriage return for the end of a line, and does not double the one that has a line feed', () => {
    const ansi = new Ansi();

    expect(text(ansi, '10 %\r20 %\r')).toBe('10 %\n20 %');
    expect(text(ansi, '\nnext')).toBe('\nnext');
  });

  it('gives up on a sequence that never ends', () => {
    const ansi = new Ansi();

    ansi.read('\x1b]');
    expect(text(ansi, 'x'.repeat(2000)).length).toBeGreaterThan(1900);
  });

  it('does not take the numbers of a colour for colours', () => {
    expect(new Ansi().read('\x1b[38;5;31mx\x1b[38;2;1;31;3my\x1b[38;5;9mz')).toEqual([
      { text: 'x', colour: null, bold: false },
      { text: 'y', colour: null, bold: false },
      { text: 'z', colour: 9, bold: false },
    ]);
  });
});

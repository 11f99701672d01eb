import { describe, expect, it } from 'vitest';
import { marked, readable, rewritten, spans, strip } from './ansi';

const texts = (line: string) => spans(line).map((span) => span.text);

describe('spans', () => {
  it('returns plain text as one', () => {
    expect(spans('a < b')).toEqual([{ text: 'a < b', look: null }]);
  });

  it('knows the sixteen colours, bold and their ends', () => {
    const [error, rest] = spans('\u001b[1;31merror\u001b[0m: none');
    expect(error?.look).toMatchObject({ fg: 1, bold: true });
    expect(rest).toEqual({ text: ': none', look: null });
    expect(spans('\u001b[92mok')[0]?.look?.fg).toBe(10);
    expect(spans('\u001b[103mok')[0]?.look?.bg).toBe(11);
    expect(spans('\u001b[31ma\u001b[mb')[1]?.look).toBeNull();
  });

  it('knows 256 colours and colours of their own', () => {
    expect(spans('\u001b[38;5;9ma')[0]?.look?.fg).toBe(9);
    expect(spans('\u001b[38;5;196ma')[0]?.look?.fg).toBe('#ff0000');
    expect(spans('\u001b[48;5;244ma')[0]?.look?.bg).toBe('#808080');
    expect(spans('\u001b[38;2;1;2;255ma')[0]?.look?.fg).toBe('#0102ff');
    expect(spans('\u001b[38;5;999;1ma')[0]?.look).toMatchObject({ fg: null, bold: true });
  });

  it('swaps colours when they are inverted', () => {
    expect(spans('\u001b[31;44;7ma')[0]?.look).toMatchObject({ fg: 4, bg: 1 });
  });

  it('leaves out what is not seen, and gives the same text as strip', () => {
    const line = '\u001b]0;title\u0007\u001b[2K\u001b[1Gdone\u0008\u001b[32m!\u001b[0m\tend\u001b[';
    expect(texts(line).join('')).toBe(strip(line));
    expect(strip(line)).toBe('done!\tend[');
  });
});

describe('rewritten', () => {
  it('shows what a program wrote last over a line', () => {
    expect(rewritten('10 %\r50 %\r100 %\r')).toBe('100 %');
    expect(rewritten('whole')).toBe('whole');
  });
});

describe('marked', () => {
  it('cuts spans where finds begin and end', () => {
    const pieces = marked(spans('ab\u001b[31mcd\u001b[0mef'), [
      [1, 3],
      [5, 6],
    ]);
    expect(pieces.map((piece) => [piece.text, piece.isFound])).toEqual([
      ['a', false],
      ['b', true],
      ['c', true],
      ['d', false],
      ['e', false],
      ['f', true],
    ]);
  });
});

describe('readable', () => {
  it('keeps a colour that stands out, and takes black or white for one that does not', () => {
    expect(readable(15, 0)).toBe('#ffffff');
    expect(readable('#ffff00', '#ffffff')).toBe('#000000');
    expect(readable(null, 4)).toBe('#ffffff');
  });
});

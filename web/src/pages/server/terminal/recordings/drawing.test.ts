// @vitest-environment node
import { describe, expect, it } from 'vitest';
import type { Cast, CastEvent } from './cast';
import { Drawing } from './drawing';

const cast = (...events: CastEvent[]): Cast => ({
  size: { columns: 80, rows: 24 },
  startedAt: null,
  by: null,
  events,
  unreadable: 0,
});
const output = (text: string): CastEvent => ({ seconds: 0, output: text });
const resized = (columns: number): CastEvent => ({ seconds: 0, size: { columns, rows: 24 } });

/** Says what is done to it. It has drawn a text when `drawn` is called. */
function sheet() {
  const done: string[] = [];
  const waiting: (() => void)[] = [];
  return {
    done,
    drawn: () => waiting.shift()?.(),
    write(text: string, drawn: () => void) {
      done.push(text.length > 100 ? `${text.length} characters` : text);
      waiting.push(drawn);
    },
    resize: ({ columns }: { columns: number }) => void done.push(`to ${columns}`),
    reset: () => void done.push('reset'),
  };
}

describe('the screen of a recording', () => {
  it('is drawn forwards by what is new', () => {
    const page = sheet();
    const drawing = new Drawing(cast(output('a'), output('b'), output('c')), page);

    drawing.show(2);
    page.drawn();
    drawing.show(2);
    drawing.show(3);

    expect(page.done).toEqual(['to 80', 'ab', 'c']);
  });

  it('begins again where it goes back', () => {
    const page = sheet();
    const drawing = new Drawing(cast(output('a'), resized(132), output('b')), page);
    drawing.show(3);
    page.drawn();
    page.drawn();

    drawing.show(1);

    expect(page.done).toEqual(['to 80', 'a', 'to 132', 'b', 'reset', 'to 80', 'a']);
  });

  it('changes its size after what came before, and before what comes after', () => {
    const page = sheet();
    const drawing = new Drawing(cast(resized(100), output('a'), resized(132), output('b'), resized(90)), page);

    drawing.show(5);
    expect(page.done).toEqual(['to 80', 'to 100', 'a']);
    page.drawn();
    expect(page.done.slice(3)).toEqual(['to 132', 'b']);
    page.drawn();
    expect(page.done.slice(5)).toEqual(['to 90']);
  });

  it('takes the last of many sizes in a row', () => {
    const page = sheet();
    const drawing = new Drawing(cast(resized(90), resized(100), resized(110), output('a')), page);

    drawing.show(4);

    expect(page.done).toEqual(['to 80', 'to 110', 'a']);
  });

  it('draws much in pieces, and leaves those out that are not wanted any more', () => {
    const page = sheet();
    const drawing = new Drawing(cast(...Array.from({ length: 6 }, () => output('x'.repeat(20_000)))), page);

    drawing.show(6);
    drawing.show(5);
    drawing.show(1);
    page.drawn();

    expect(page.done).toEqual(['to 80', '32768 characters', 'reset', 'to 80', '20000 characters']);
  });

  it('draws one long output in pieces, all of it', () => {
    const page = sheet();
    const drawing = new Drawing(cast(output('a'), output('x'.repeat(70_000)), resized(132), output('b')), page);

    drawing.show(4);
    for (let count = 0; count < 3; count += 1) page.drawn();

    expect(page.done).toEqual(['to 80', '32768 characters', '32768 characters', '4465 characters', 'to 132', 'b']);
  });

  it('begins again where a long output that is half there is not wanted any more', () => {
    const page = sheet();
    const drawing = new Drawing(cast(output('a'), output('x'.repeat(70_000))), page);
    drawing.show(2);

    drawing.show(1);
    page.drawn();

    expect(page.done.slice(1)).toEqual(['32768 characters', 'reset', 'to 80', 'a']);
  });

  it('draws on after what the emulator has refused', () => {
    const page = sheet();
    let isBroken = true;
    const drawing = new Drawing(cast(output('a'), output('b')), {
      ...page,
      write(text, drawn) {
        if (isBroken) throw new Error('too much');
        page.write(text, drawn);
      },
    });

    expect(() => drawing.show(1)).toThrow('too much');
    isBroken = false;
    drawing.show(2);

    expect(page.done).toEqual(['to 80', 'b']);
  });

  it('draws nothing more when it has been left', () => {
    const page = sheet();
    const drawing = new Drawing(cast(output('a'), resized(132), output('b')), page);
    drawing.show(3);

    drawing.stop();
    page.drawn();

    expect(page.done).toEqual(['to 80', 'a']);
  });
});

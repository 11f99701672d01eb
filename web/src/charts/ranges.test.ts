import { describe, expect, it } from 'vitest';
import {
  chosen,
  hourBefore,
  isSame,
  keyOf,
  momentOf,
  panned,
  PRESETS,
  presetsWith,
  queryOf,
  rangeOf,
  spanOf,
  stretched,
  textOf,
  USUAL,
  zoomed,
  type Range,
} from './ranges';

const NOW = 1_800_000_000;

function query(range: Range): URLSearchParams {
  const set = Object.entries(queryOf(range)).filter((entry): entry is [string, string] => entry[1] !== null);
  return new URLSearchParams(set);
}

describe('ranges', () => {
  it('are in the address and come back from it', () => {
    const ranges: Range[] = [
      ...PRESETS.map((preset): Range => ({ kind: 'live', seconds: preset.seconds })),
      { kind: 'fixed', from: NOW - 500, to: NOW - 100 },
      { kind: 'live', seconds: 2 * 86_400 },
      { kind: 'live', seconds: 21 * 86_400 },
      { kind: 'live', seconds: 5_400 },
      { kind: 'live', seconds: 45 },
    ];

    for (const range of ranges) expect(rangeOf(query(range))).toEqual(range);
  });

  it('take what makes no sense for the usual one', () => {
    for (const text of [
      '',
      'range=3q',
      'range=0s',
      'range=99y',
      'range=-1d',
      'from=x&to=y',
      `from=${NOW}`,
      `from=${NOW}&to=${NOW - 1}`,
    ]) {
      expect(rangeOf(new URLSearchParams(text))).toEqual(USUAL);
    }
  });

  it('read times with any offset, and seconds', () => {
    const expected = { kind: 'fixed', from: 1_795_296_000, to: 1_795_299_600 };

    expect(rangeOf(new URLSearchParams({ from: '2026-11-21T21:20:00Z', to: '2026-11-21T23:20:00+01:00' }))).toEqual(
      expected,
    );
    expect(rangeOf(new URLSearchParams('from=1795296000&to=1795299600'))).toEqual(expected);
  });

  it('are written with the largest unit, and listed beside the presets', () => {
    expect([45, 5_400, 2 * 86_400, 14 * 86_400, 7 * 86_400].map(keyOf)).toEqual(['45s', '90m', '2d', '2w', '7d']);
    expect(presetsWith('2d')).toEqual([...PRESETS, { key: '2d', seconds: 172_800 }]);
    for (const key of ['24h', '', '3q']) expect(presetsWith(key)).toEqual(PRESETS);
  });

  it('have a marked time beside them, to the millisecond', () => {
    const marked = (text: string) => momentOf(new URLSearchParams({ at: text }));

    for (const at of [NOW, NOW + 0.437, NOW + 0.001]) expect(marked(textOf(at))).toBe(at);
    expect(textOf(1_795_296_000)).toBe('2026-11-21T21:20:00Z');
    expect(marked('soon')).toBeNull();
    expect(momentOf(new URLSearchParams())).toBeNull();
  });

  it('follow the present when they are live', () => {
    expect(spanOf({ kind: 'live', seconds: 300 }, NOW)).toEqual({ from: NOW - 300, to: NOW });
    expect(spanOf({ kind: 'fixed', from: 5, to: 9 }, NOW)).toEqual({ from: 5, to: 9 });
  });

  it('zoom about a time, which stays where it is', () => {
    expect(zoomed({ from: NOW - 1000, to: NOW - 600 }, 0.5, NOW - 900, NOW)).toEqual({
      kind: 'fixed',
      from: NOW - 950,
      to: NOW - 750,
    });
  });

  it('do not go beyond the present', () => {
    expect(zoomed({ from: NOW - 100, to: NOW }, 2, NOW - 50, NOW)).toEqual({ kind: 'fixed', from: NOW - 200, to: NOW });
    expect(panned({ from: NOW - 100, to: NOW - 20 }, 50, NOW)).toEqual({ kind: 'fixed', from: NOW - 80, to: NOW });
  });

  it('keep their length when they are moved by parts of a second', () => {
    let range = panned({ from: NOW - 300.25, to: NOW - 100.25 }, 0.4, NOW);
    for (let times = 0; times < 20; times += 1) range = panned(spanOf(range, NOW), -0.7, NOW);

    expect(range.kind === 'fixed' && range.to - range.from).toBe(200);
  });

  it('are never shorter than can be seen', () => {
    expect(chosen(NOW - 51, NOW - 50, NOW)).toEqual({ kind: 'fixed', from: NOW - 56, to: NOW - 46 });
  });

  it('are the hour before an end, with what came after it as far as that is past', () => {
    expect(hourBefore(NOW - 9_000.4, NOW)).toEqual({ kind: 'fixed', from: NOW - 12_301, to: NOW - 8_701 });
    expect(hourBefore(NOW - 60, NOW)).toEqual({ kind: 'fixed', from: NOW - 3_360, to: NOW });
  });

  it('are the same whatever object they are', () => {
    expect(isSame({ kind: 'live', seconds: 5 }, { kind: 'live', seconds: 5 })).toBe(true);
    expect(isSame({ kind: 'fixed', from: 1, to: 5 }, { kind: 'fixed', from: 1, to: 6 })).toBe(false);
    expect(isSame({ kind: 'fixed', from: 1, to: 5 }, { kind: 'live', seconds: 4 })).toBe(false);
  });

  it('begin with the first sample of a server that is younger', () => {
    const span = { from: NOW - 900, to: NOW };

    expect(stretched(span, null)).toEqual(span);
    expect(stretched(span, NOW - 5_000)).toEqual(span);
    expect(stretched(span, NOW - 40)).toEqual({ from: NOW - 40, to: NOW });
    expect(stretched(span, NOW - 2)).toEqual({ from: NOW - 2, to: NOW + 8 });
  });
});

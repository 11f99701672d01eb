import { describe, expect, it, test } from 'vitest';
import { fit, fitWord, pieces, plain } from './fuzzy';

/** The texts that fit, the best first. */
function found(typed: string, texts: string[]): string[] {
  return texts
    .map((text) => ({ text, fit: fit(typed, text) }))
    .filter((each) => each.fit !== null)
    .sort((a, b) => (b.fit?.score ?? 0) - (a.fit?.score ?? 0))
    .map(({ text }) => text);
}

const servers = ['web-eu-1', 'web-eu-2', 'db-primary', 'db-replica', 'nas', 'analytics-db'];

describe('what was typed', () => {
  it('finds a text by its beginning first', () => {
    expect(found('db', servers)).toEqual(['db-primary', 'db-replica', 'analytics-db']);
  });

  it('finds a text by the beginnings of its words', () => {
    expect(found('dp', servers)[0]).toBe('db-primary');
    expect(found('we2', servers)).toEqual(['web-eu-2']);
  });

  it('finds a text by letters with gaps', () => {
    expect(found('prmry', servers)).toEqual(['db-primary']);
    expect(found('xq', servers)).toEqual([]);
  });

  it('finds words in any order', () => {
    expect(found('2 eu', servers)).toEqual(['web-eu-2']);
    expect(found('eu nas', servers)).toEqual([]);
  });

  it('that is the whole text comes before a longer one', () => {
    expect(found('nas', ['nas-backup', 'nas', 'old-nas'])).toEqual(['nas', 'nas-backup', 'old-nas']);
  });

  it('that is nothing fits everything', () => {
    expect(found('  ', servers)).toHaveLength(servers.length);
  });
});

test('case and accents make no difference', () => {
  expect(plain('Büro-ÄÖ')).toBe('buro-ao');
  expect(fit('buro', 'Büro-Server')?.at).toEqual([0, 1, 2, 3]);
  expect(plain('İx🙂y')).toHaveLength('İx🙂y'.length);
});

test('what stands beside a text counts less than the text', () => {
  const byTag = fit('web', 'frontend', ['10.0.0.7', 'web']);
  const byName = fit('web', 'web-1', []);

  expect(byTag?.at).toEqual([]);
  expect(byTag?.score).toBeLessThan(byName?.score ?? 0);
  expect(fit('10.0', 'frontend', ['10.0.0.7'])).not.toBeNull();
  // Letters that are far from each other find nothing there.
  expect(fit('wb', 'frontend', ['web'])).toBeNull();
});

test('a fit at the beginning of a word is better than one before it', () => {
  expect(fitWord('p', 'wipe-prod')?.at).toEqual([5]);
});

test('characters that mean something elsewhere are letters here', () => {
  expect(found('.*', ['a.*b', 'ab'])).toEqual(['a.*b']);
  expect(found('<b>', ['<b>bold</b>', 'bold'])).toEqual(['<b>bold</b>']);
});

test('a text is cut into what fits and what does not', () => {
  expect(pieces('db-primary', [0, 3])).toEqual([
    { text: 'd', fits: true },
    { text: 'b-', fits: false },
    { text: 'p', fits: true },
    { text: 'rimary', fits: false },
  ]);
  expect(pieces('', [])).toEqual([]);
});

test('ten thousand names are searched at once', () => {
  const names = Array.from({ length: 10_000 }, (_, index) => `server-${index}.rack-${index % 40}.example.com`);

  expect(found('rack-7 9999', names)).toEqual([]);
  expect(found('server 9999', names)[0]).toBe('server-9999.rack-39.example.com');
});

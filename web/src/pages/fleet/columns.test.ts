import { describe, expect, test } from 'vitest';
import { chosenColumns, columnKeys, fitting, tracksOf, usualColumns } from './columns';

function keysAt(width: number, chosen = usualColumns) {
  return fitting(chosen, width).map(({ key }) => key);
}

describe('the columns that are shown', () => {
  test.each([320, 360, 762, 838, 1018, 1178, 1378, 1630])('need no more than a width of %i', (width) => {
    const shown = fitting(columnKeys, width);

    expect(shown.reduce((sum, column) => sum + column.width, 0)).toBeLessThanOrEqual(width);
    expect(shown[0]?.key).toBe('name');
  });

  test('are all of the usual ones on a usual display', () => {
    expect(keysAt(1162)).toEqual([...usualColumns]);
  });

  test('are those that say most where there is little room', () => {
    expect(keysAt(292)).toEqual(['name', 'cpu', 'memory']);
    expect(keysAt(330)).toEqual(['name', 'cpu', 'memory', 'disk']);
    expect(keysAt(762)).toEqual(expect.arrayContaining(['name', 'status', 'beats', 'cpu', 'memory', 'disk']));
  });

  test('have the status before the name on a phone, for who chose it', () => {
    expect(fitting(usualColumns, 362)[0]?.hasStatus).toBe(true);
    expect(fitting(usualColumns, 1162)[0]?.hasStatus).toBe(false);
    expect(fitting(['name', 'cpu'], 362)[0]?.hasStatus).toBe(false);
  });

  test('leave room for tags beside the name, or have none', () => {
    const isRoomy = (width: number, chosen = usualColumns) => fitting(chosen, width)[0]?.hasTags;

    expect(isRoomy(1180)).toBe(false);
    expect(isRoomy(1391)).toBe(false);
    expect(isRoomy(1392)).toBe(true);
    expect(isRoomy(1600, ['name', 'tags'])).toBe(false);
  });

  test('are none that nobody chose', () => {
    expect(keysAt(1630, ['name', 'load'])).toEqual(['name', 'load']);
  });

  test('take what is left where they can use it', () => {
    expect(tracksOf(fitting(['name', 'beats', 'load'], 1000))).toBe(
      'minmax(158px, 1fr) minmax(142px, 210px) minmax(58px, 58px)',
    );
  });
});

describe('a kept choice', () => {
  test('is read as it was written, in the order of the table', () => {
    expect(chosenColumns(JSON.stringify(['disk', 'cpu']))).toEqual(['name', 'cpu', 'disk']);
  });

  test.each([null, '', 'disk', '{"a":1}', '3'])('that is none is not one: %s', (text) => {
    expect(chosenColumns(text)).toBeNull();
  });

  test('of columns that there are no more leaves them out', () => {
    expect(chosenColumns('["name","colour",7,"load"]')).toEqual(['name', 'load']);
  });
});

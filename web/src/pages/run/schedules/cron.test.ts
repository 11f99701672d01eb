import { describe, expect, it } from 'vitest';
import { readCron, type Cron } from './cron';

const fault = (text: string) => {
  const read = readCron(text);
  return 'fault' in read ? read.fault : null;
};

describe('an expression', () => {
  it('has five fields', () => {
    for (const text of ['', '* * * *', '0 0 3 * * *', '@daily', '* '.repeat(200)])
      expect(fault(text), text).toBe('fields');
  });

  // Those of signing/src/repeat.rs: the form refuses what the service refuses.
  it('has numbers, lists, ranges, steps and names alone', () => {
    const wrong = [
      '60 * * * *',
      '* 24 * * *',
      '* * 0 * *',
      '* * * 13 *',
      '* * * * 8',
      '* * L * *',
      '* * 15W * *',
      '* * * * 5#3',
      '* * ? * *',
      '*/0 * * * *',
      '5-1 * * * *',
      'a * * * *',
      '1,,2 * * * *',
      '\u0661 * * * *',
      '* * * * *\t',
      '-1 * * * *',
      '5/10 * * * *',
      '/10 * * * *',
    ];
    for (const text of wrong) expect(fault(text), text).toBe('syntax');
    for (const text of ['*/15 9-17 1,15 jan-MAR mon', '0-30/10 * * * 5-7', '  0 3 * * *  '])
      expect(fault(text), text).toBeNull();
  });

  it('is due some day', () => {
    expect(fault('0 0 30 2 *')).toBe('never');
    expect(fault('0 0 31 4,6 *')).toBe('never');
    expect(fault('0 0 29 2 *')).toBeNull();
    expect(fault('0 0 30 2 MON')).toBeNull();
  });

  it('has a step where that divides the hour or the day', () => {
    const steps = (text: string) => {
      const { minutes, hours } = readCron(text) as Cron;
      return [minutes.step, hours.step];
    };

    expect(steps('*/15 */8 * * *')).toEqual([15, 8]);
    expect(steps('*/1 */1 * * *')).toEqual([1, 1]);
    for (const text of ['*/45 */9 * * *', '*/90 */24 * * *', '*/60 */25 * * *', '0-59/15 1,*/8 * * *', '* * * * *'])
      expect(steps(text), text).toEqual([null, null]);
  });

  it('names what it matches', () => {
    const read = readCron('*/20 9-11 1,15 feb SUN-TUE,7');

    expect(read).toMatchObject({
      minutes: { values: [0, 20, 40], step: 20, isLoose: true },
      hours: { values: [9, 10, 11], isAny: false, isLoose: false },
      days: { values: [1, 15] },
      months: { values: [2] },
      weekdays: { values: [0, 1, 2] },
    });
  });
});

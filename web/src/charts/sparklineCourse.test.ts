import { describe, expect, test, vi } from 'vitest';
import { BINS, Course } from './sparklineCourse';

const NOW = 1_800_000_000;
const PRESENT = BINS - 1;

function columns(minutesAgo: number[], avg: (number | null)[], resolution_seconds = 60) {
  return { resolution_seconds, timestamps: minutesAgo.map((minutes) => NOW - minutes * 60), avg };
}

test('a course without values draws nothing', () => {
  expect(new Course().stretches(NOW)).toEqual([]);
});

test('the history is drawn from the oldest to the newest', () => {
  const course = new Course();

  course.fill(columns([2, 1, 0], [10, 20, 30]));

  expect(course.stretches(NOW)).toEqual([
    [
      [PRESENT - 2, 10],
      [PRESENT - 1, 20],
      [PRESENT, 30],
    ],
  ]);
});

test('values of one minute are one point: their mean, and the newest at the end of the line', () => {
  const course = new Course();

  for (const [second, value] of [
    [0, 10],
    [30, 30],
    [60, 50],
    [90, 70],
  ] as const)
    course.add(NOW + second, value);

  expect(course.stretches(NOW + 90)).toEqual([
    [
      [PRESENT - 1, 20],
      [PRESENT, 70],
    ],
  ]);
});

describe('gaps', () => {
  test('a missing minute parts the line', () => {
    const course = new Course();

    course.fill(columns([4, 3, 1, 0], [1, 2, 3, 4]));

    expect(course.stretches(NOW).map((stretch) => stretch.length)).toEqual([2, 2]);
  });

  test('a null of the history is one', () => {
    const course = new Course();

    course.fill(columns([2, 1, 0], [1, null, 3]));

    expect(course.stretches(NOW).map((stretch) => stretch.length)).toEqual([1, 1]);
  });

  test('minutes that a slow agent leaves out are none', () => {
    const course = new Course();
    course.intervalSeconds = 120;

    course.fill(columns([4, 2, 0], [1, 2, 3]));

    expect(course.stretches(NOW)).toHaveLength(1);
  });

  test('a coarse history covers the minutes that its points stand for', () => {
    const course = new Course();

    course.fill(columns([10, 5], [1, 2], 300));

    expect(course.stretches(NOW).map((stretch) => stretch.length)).toEqual([10]);
  });
});

test('what is older than an hour moves out', () => {
  const course = new Course();
  course.add(NOW, 50);

  expect(course.stretches(NOW + (BINS - 1) * 60)).toEqual([[[0, 50]]]);
  expect(course.stretches(NOW + BINS * 60)).toEqual([]);
});

test('a value that lies before the hour does not take the place of a newer one', () => {
  const course = new Course();
  course.add(NOW, 50);

  course.add(NOW - BINS * 60, 1);

  expect(course.stretches(NOW)).toEqual([[[PRESENT, 50]]]);
});

test('a new history takes the place of all that was there', () => {
  const course = new Course();
  course.add(NOW - 120, 99);

  course.fill(columns([0], [10]));

  expect(course.stretches(NOW)).toEqual([[[PRESENT, 10]]]);
});

test('a listener is called when a minute begins, until it leaves', () => {
  const course = new Course();
  const told = vi.fn();
  const stop = course.onChange(told);

  for (const second of [0, 5, 59, 60, 65]) course.add(NOW + second, second);
  stop();
  course.add(NOW + 120, 1);

  expect(told).toHaveBeenCalledTimes(2);
});

test('a listener is called when there is a new history', () => {
  const course = new Course();
  const told = vi.fn();
  course.onChange(told);

  course.fill(columns([0], [10]));

  expect(told).toHaveBeenCalledOnce();
});

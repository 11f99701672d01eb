// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Failure } from '../api/failure';
import { Polled } from './polled.svelte';

let isHidden = false;

beforeEach(() => {
  isHidden = false;
  vi.useFakeTimers();
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => isHidden);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function turn(hidden: boolean) {
  isHidden = hidden;
  document.dispatchEvent(new Event('visibilitychange'));
  return vi.advanceTimersByTimeAsync(0);
}

it('is read again while somebody looks, and once when they are back', async () => {
  let asked = 0;
  const shown = new Polled(
    async () => ++asked,
    () => 1_000,
  );

  const stops = [shown.watch(), shown.watch()];
  await vi.advanceTimersByTimeAsync(2_500);
  expect(shown.value).toBe(3);
  await turn(true);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toBe(4);
  await turn(false);
  expect(asked).toBe(5);

  stops[0]?.();
  stops[0]?.();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked).toBe(6);
  stops[1]?.();
  await turn(false);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toBe(6);
});

it('is read no more when it stays as it is', async () => {
  let asked = 0;
  const shown = new Polled(
    async () => ++asked,
    (value) => (value < 2 ? 1_000 : null),
  );

  const stop = shown.watch();
  await vi.advanceTimersByTimeAsync(10_000);
  await turn(false);
  stop();

  expect(asked).toBe(2);
});

/** What is watched and has been read once; `answer` says what the next reading gives. */
async function watched(first: () => number) {
  const source = { asked: 0, answer: first };
  const shown = new Polled(
    async () => {
      source.asked += 1;
      return source.answer();
    },
    () => 1_000,
  );
  const stop = shown.watch();
  await vi.advanceTimersByTimeAsync(0);
  return { source, shown, stop };
}

it('keeps what it has when it cannot be read, and asks more and more seldom', async () => {
  const { source, shown, stop } = await watched(() => 7);

  source.answer = () => {
    throw Failure.unreachable();
  };
  await vi.advanceTimersByTimeAsync(7_000);
  expect([source.asked, shown.value, shown.failure?.code]).toEqual([4, 7, 'unreachable']);
  source.answer = () => 8;
  await vi.advanceTimersByTimeAsync(8_000);
  expect([source.asked, shown.value, shown.failure]).toEqual([5, 8, null]);

  source.answer = () => {
    throw new Failure(404, 'not_found', 'Gone.');
  };
  await vi.advanceTimersByTimeAsync(60_000);
  expect(source.asked).toBe(6);
  // Nor when somebody comes back to the page.
  document.dispatchEvent(new Event('visibilitychange'));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(source.asked).toBe(6);
  stop();
});

it('asks on after a refusal, as seldom as it asks at all', async () => {
  const { source, shown, stop } = await watched(() => 7);

  source.answer = () => {
    throw new Failure(403, 'forbidden', 'Not now.');
  };
  await vi.advanceTimersByTimeAsync(15_000);
  expect([source.asked, shown.failure?.status]).toEqual([2, 403]);
  source.answer = () => 8;
  await vi.advanceTimersByTimeAsync(1_000);
  expect([source.asked, shown.value, shown.failure]).toEqual([3, 8, null]);
  stop();
});

it('shows what a change has brought, and not the older answer that was on its way', async () => {
  let answer: (value: string) => void = () => undefined;
  const shown = new Polled(
    () => new Promise<string>((resolve) => (answer = resolve)),
    () => null,
  );
  const stop = shown.watch();

  shown.show('signed');
  answer('waits');
  await vi.advanceTimersByTimeAsync(0);
  expect(shown.value).toBe('signed');
  shown.forget();
  stop();

  expect(shown.value).toBeNull();
});

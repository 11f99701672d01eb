// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { clock } from '../live/clock.svelte';
import { router } from '../router/router.svelte';
import { Steps } from './steps';

let steps: Steps;
let now = 0;

beforeEach(() => {
  vi.spyOn(clock, 'present').mockImplementation(() => now);
  vi.spyOn(window, 'scrollTo').mockImplementation(() => undefined);
  router.go(`/page${crypto.randomUUID()}`);
  steps = new Steps();
});
afterEach(() => vi.restoreAllMocks());

/** Shows a fixed range, long after what was done before. */
function zoom(from: number, to: number): void {
  now += 10_000;
  steps.show({ kind: 'fixed', from, to });
}

/** Does what makes the browser move. */
async function moved(act: () => void): Promise<void> {
  const done = new Promise((resolve) => window.addEventListener('popstate', resolve, { once: true }));
  act();
  await done;
}

const times = () => [router.query.get('from'), router.query.get('to')].map((text) => text && Date.parse(text) / 1000);

test('the button that leads back does so after Back of the browser, and after Forward', async () => {
  zoom(100, 500);
  zoom(200, 400);
  zoom(250, 300);

  await moved(() => history.back());
  expect(times()).toEqual([200, 400]);
  await moved(() => steps.back());
  expect(times()).toEqual([100, 500]);
  await moved(() => history.forward());
  await moved(() => history.forward());
  expect(times()).toEqual([250, 300]);
  await moved(() => steps.back());
  expect(times()).toEqual([200, 400]);
});

test('a page that is opened again knows the steps that led to its entry', async () => {
  zoom(100, 500);

  await moved(() => new Steps().back());

  expect(times()).toEqual([null, null]);
});

test('Back keeps what was set since, and changes the time', async () => {
  zoom(100, 500);
  router.set({ peaks: '1' });

  await moved(() => history.back());

  expect(times()).toEqual([null, null]);
  expect(router.query.get('peaks')).toBe('1');
});

test('a wheel that turns on is one step', async () => {
  zoom(100, 500);
  now += 100;
  steps.show({ kind: 'fixed', from: 200, to: 400 });

  await moved(() => steps.back());

  expect(times()).toEqual([null, null]);
});

test('leaving twice before the browser has moved goes back once', async () => {
  zoom(100, 500);
  zoom(200, 400);

  await moved(() => {
    steps.back();
    steps.back();
  });

  expect(times()).toEqual([100, 500]);
  expect(router.steps).toHaveLength(1);
});

test('all last steps of a kind are taken back at once', async () => {
  now += 10_000;
  steps.step('one', { zoom: 'one.1' });
  now += 10_000;
  steps.step('two', { zoom: 'one.1,two.1' });
  now += 10_000;
  steps.step('two', { zoom: 'one.1,two.2' });

  expect(steps.undoAll('one', () => true)).toBe(false);
  expect(steps.undoAll('two', () => false)).toBe(false);
  await moved(() => steps.undoAll('two', ({ zoom }) => zoom === 'one.1'));

  expect(router.query.get('zoom')).toBe('one.1');
  expect(router.steps.map(({ what }) => what)).toEqual(['one']);
});

test('without a step, back shows the usual range', () => {
  router.set({ from: '1970-01-01T00:01:40Z', to: '1970-01-01T00:05:00Z' });

  steps.back();

  expect(times()).toEqual([null, null]);
});

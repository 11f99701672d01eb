// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Alert } from '../api/types';
import { alerts } from '../live/alerts.svelte';
import { fleet, type Row } from '../live/fleet.svelte';
import { toasts } from '../ui/toasts.svelte';
import { announce } from './announce';

vi.hoisted(() => {
  globalThis.isSecureContext = false;
  // The page of all servers shows alerts itself.
  history.replaceState(null, '', '/account');
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

const alert = { id: 'one', server_id: 's', metric_type: 'reboot', severity: 'warning', peak_value: 1 } as Alert;
const texts = () => toasts.shown.map(({ text }) => text);

beforeEach(() => {
  vi.useFakeTimers();
  alerts.isKnown = true;
});

afterEach(() => {
  toasts.shown = [];
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A list of servers that is on its way, until what it gives is called. */
function reading(): () => void {
  let end = () => {};
  vi.spyOn(fleet, 'load').mockReturnValue(new Promise((done) => (end = done)));
  return end;
}

test('an alert that comes before the list of servers is announced with the name of its server', async () => {
  const end = reading();

  const announced = announce([alert], [alert]);
  expect(texts()).toEqual([]);
  vi.spyOn(fleet, 'row').mockReturnValue({ server: { name: 'web-1' } } as Row);
  end();
  await announced;

  expect(texts()).toEqual([expect.stringContaining('web-1')]);
});

test('an alert is announced without a name where the list does not come', async () => {
  reading();

  const announced = announce([alert], [alert]);
  await vi.advanceTimersByTimeAsync(3_000);
  await announced;

  expect(texts()).toHaveLength(1);
});

test('after a sign-out no alert is announced', async () => {
  const end = reading();

  const announced = announce([alert], [alert]);
  alerts.isKnown = false;
  end();
  await announced;

  expect(texts()).toEqual([]);
});

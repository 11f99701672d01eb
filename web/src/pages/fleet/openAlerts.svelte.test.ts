// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/fleet';
import type { Alert } from '../../api/types';
import { alerts } from '../../live/alerts.svelte';
import OpenAlerts from './OpenAlerts.svelte';

let open = $state.raw<Alert[]>([]);
let shown: ReturnType<typeof mount>;

beforeEach(() => {
  vi.spyOn(alerts, 'unresolved', 'get').mockImplementation(() => open);
  shown = mount(OpenAlerts, { target: document.body });
});

afterEach(async () => {
  await unmount(shown);
  vi.restoreAllMocks();
});

/** These are open, the newest first. */
function tell(...ids: string[]) {
  show(ids.map(alertOf));
}

function show(alerts: Alert[]) {
  open = alerts;
  flushSync();
}

const alertOf = (id: string) =>
  ({
    id,
    server_id: 's',
    owner: { id: 'u', username: 'ada' },
    severity: 'warning',
    status: 'active',
    metric_type: 'schedule',
    message: id,
    triggered_at: `2026-11-21T10:00:0${id}Z`,
  }) as unknown as Alert;
const link = (text: string) => [...document.querySelectorAll('a')].find((each) => each.textContent === text);
const said = () => [...document.querySelectorAll('.message')].map((each) => each.textContent);

it('the alert with the focus stays when newer ones push it out', () => {
  tell('4', '3', '2', '1');
  const last = link('1');
  last?.focus();

  tell('5', '4', '3', '2', '1');
  expect(said()).toEqual(['5', '4', '3', '1']);
  expect(document.activeElement).toBe(last);
  tell('6', '5', '4', '3', '2', '1');
  expect(said()).toEqual(['6', '5', '4', '1']);
  expect(document.activeElement).toBe(last);

  // From one link of its row to the other.
  last?.closest('li')?.querySelector<HTMLElement>('.server')?.focus();
  flushSync();
  expect(said()).toEqual(['6', '5', '4', '1']);
  (document.activeElement as HTMLElement).blur();
  flushSync();
  expect(said()).toEqual(['6', '5', '4']);
});

it('the alert with the focus stays in its place when it is resolved, and says so', () => {
  tell('3', '2', '1');
  const second = link('2');
  second?.focus();

  tell('3', '1');
  expect(said()).toEqual(['3', '2', '1']);
  expect(second?.closest('li')?.textContent).toContain('resolved');
  tell();
  expect(said()).toEqual(['2']);
  expect(document.activeElement).toBe(second);

  second?.blur();
  flushSync();
  expect(document.querySelector('section')).toBeNull();
});

it('the alert with the focus stays in its place when it is resolved, also among those of the same time', () => {
  const together = ['1', '2', '3'].map((id) => ({ ...alertOf(id), triggered_at: '2026-11-21T10:00:00Z' }));
  show(together);
  const first = link('1');
  first?.focus();

  show(together.slice(1));

  expect(said()).toEqual(['1', '2', '3']);
  expect(document.activeElement).toBe(first);
  first?.blur();
  flushSync();
});

it('the link to all alerts stays while it has the focus', () => {
  tell('5', '4', '3', '2', '1');
  const all = link(m.allOpen({ count: 5 }));
  all?.focus();

  tell('2', '1');
  expect(document.activeElement).toBe(all);
  expect(all?.textContent).toBe(m.allOpen({ count: 2 }));

  all?.blur();
  flushSync();
  expect(all?.isConnected).toBe(false);
});

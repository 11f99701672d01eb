// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import type { Alert } from '../../api/types';
import { alerts } from '../../live/alerts.svelte';
import { answered } from '../testing';
import OpenAlerts from './OpenAlerts.svelte';

afterEach(() => {
  document.body.replaceChildren();
  vi.restoreAllMocks();
});

const alertOf = (id: string) =>
  ({
    id,
    server_id: 's',
    owner: { id: 'u', username: 'ada' },
    severity: 'warning',
    status: 'active',
    metric_type: 'schedule',
    message: id,
    triggered_at: '2026-11-21T10:00:00Z',
    resolved_at: null,
  }) as unknown as Alert;

/** The page with these alerts, which change by `tell`. */
function pageOf(...begin: string[]) {
  let open = $state.raw(begin.map(alertOf));
  vi.spyOn(alerts, 'unresolved', 'get').mockImplementation(() => open);
  vi.spyOn(api, 'GET').mockResolvedValue(answered([]));
  document.body.innerHTML = '<main><h1>Alerts</h1></main>';
  const shown = mount(OpenAlerts, { target: document.querySelector('main') ?? document.body });
  flushSync();
  const tell = async (...ids: string[]) => {
    open = ids.map(alertOf);
    flushSync();
    await Promise.resolve();
  };
  return { shown, tell };
}
const link = (id: string) => document.querySelector<HTMLElement>(`a[href="/alerts/${id}"]`);
const focused = () => document.activeElement?.tagName;

it('the next alert has the focus once one is resolved, and the heading after the last one', async () => {
  const { shown, tell } = pageOf('1', '2');
  link('1')?.focus();

  await tell('2');
  expect(document.activeElement).toBe(link('2'));
  await tell();
  expect(focused()).toBe('H1');
  await unmount(shown);
});

it('the heading has the focus once the last alert takes the pressed button along', async () => {
  const { shown, tell } = pageOf('1');
  document.querySelector('button')?.focus();
  expect(focused()).toBe('BUTTON');

  await tell();

  expect(focused()).toBe('H1');
  await unmount(shown);
});

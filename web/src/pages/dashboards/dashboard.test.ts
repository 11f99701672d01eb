// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import * as app from '#messages/app';
import * as m from '#messages/dashboards';
import { api } from '../../api/client';
import { fleet } from '../../live/fleet.svelte';
import { router } from '../../router/router.svelte';
import { toasts } from '../../ui/toasts.svelte';
import { saveFile } from '../explore/file';
import { answered, waiting, withDialogs } from '../testing';
import Dashboard from './Dashboard.svelte';

// What draws charts asks the browser for more than jsdom has.
vi.mock('./Panel.svelte', () => ({ default: () => undefined }));
vi.mock('./AddView.svelte', () => ({ default: () => undefined }));
vi.mock('../explore/file', async (actual) => ({ ...(await actual<object>()), saveFile: vi.fn() }));
withDialogs();
afterEach(() => {
  vi.restoreAllMocks();
  vi.mocked(saveFile).mockClear();
  fleet.reset();
});

const dashboard = (name: string) => ({
  id: 'one',
  name,
  description: '',
  mine: true,
  shared_with: 'nobody',
  owner: { id: 'somebody', username: 'somebody' },
  layout: { panels: [], range: null },
});

const withFans = { ...dashboard('Fans'), layout: { panels: [{ view_id: 'fans', width: 6, height: 1 }], range: null } };
const fans = {
  ...{ id: 'fans', name: 'Fans of web', description: '', mine: true, shared_with: 'nobody', hidden_servers: 0 },
  definition: { series: ['fan_speed'], servers: [], tag: 'web', function: 'avg', by: 'none', top: 5, range: null },
};

/** The service: what it answers to each path. */
function answers(byPath: Record<string, () => unknown>): void {
  vi.spyOn(api, 'GET').mockImplementation(
    ((path: string) => byPath[path]?.() ?? Promise.resolve(answered([]))) as never,
  );
}

const button = (name: string) =>
  [...document.querySelectorAll('button')].find((one) => one.textContent?.trim() === name);

it('what was saved is shown, though nothing can be read any more', async () => {
  let isBroken = false;
  vi.spyOn(api, 'GET').mockImplementation(((path: string) => {
    if (isBroken) return Promise.reject(new TypeError('network'));
    return Promise.resolve(answered(path === '/api/v1/dashboards/{id}' ? dashboard('Old') : []));
  }) as never);
  const put = vi.spyOn(api, 'PUT').mockResolvedValue(answered(dashboard('New')));
  router.set({ edit: '1' });
  const shown = mount(Dashboard, { target: document.body, props: { id: 'one' } });
  await vi.waitFor(() => expect(button(m.save())).toBeDefined());
  expect(document.querySelector('h1')?.textContent).toContain('Old');

  isBroken = true;
  button(m.save())?.click();
  flushSync();

  await vi.waitFor(() => expect(button(m.edit())).toBeDefined());
  expect(document.querySelector('h1')?.textContent).toContain('New');
  expect(put).toHaveBeenCalledTimes(1);
  await unmount(shown);
});

it('views that come late are shared with their dashboard, which cannot be changed during that time', async () => {
  const views = waiting();
  answers({ '/api/v1/dashboards/{id}': () => answered(withFans), '/api/v1/views': () => views.answer });
  const put = vi.spyOn(api, 'PUT').mockResolvedValue(answered(withFans));
  router.set({ edit: '1' });
  const shown = mount(Dashboard, { target: document.body, props: { id: 'one' } });
  await vi.waitFor(() => expect(button(m.save())).toBeDefined());
  const audience = [...document.querySelectorAll('select')].find((one) => one.value === 'nobody') as HTMLSelectElement;
  audience.value = 'everyone';
  audience.dispatchEvent(new Event('change', { bubbles: true }));

  button(m.save())?.click();
  flushSync();
  expect(audience.closest('section')?.parentElement?.inert).toBe(true);
  expect(put).not.toHaveBeenCalled();
  views.end([fans]);

  await vi.waitFor(() => expect(button(m.edit())).toBeDefined());
  const sent = put.mock.calls as unknown as [path: string, given: { body: object }][];
  expect(sent.map(([path, { body }]) => [path, body])).toEqual([
    ['/api/v1/dashboards/{id}', expect.objectContaining({ shared_with: 'everyone' })],
    ['/api/v1/views/{id}', { shared_with: 'everyone' }],
  ]);
  await unmount(shown);
});

it('a file for Grafana has what comes after the click', async () => {
  const [views, servers, names] = [waiting(), waiting(), waiting()];
  answers({
    '/api/v1/dashboards/{id}': () => answered(withFans),
    '/api/v1/views': () => views.answer,
    '/api/v1/servers': () => servers.answer,
    '/api/v1/metrics/fleet/names': () => names.answer,
  });
  const shown = mount(Dashboard, { target: document.body, props: { id: 'one' } });
  await vi.waitFor(() => expect(button(m.grafana())).toBeDefined());

  button(m.grafana())?.click();
  names.end({ names: [{ name: 'fan_speed', unit: 'rpm', kind: 'gauge' }] });
  views.end([fans]);
  servers.end([{ id: 's1', name: 'web-1', tags: ['web'], status: 'online' }]);

  await vi.waitFor(() => expect(saveFile).toHaveBeenCalledTimes(1));
  expect(vi.mocked(saveFile).mock.lastCall?.[2]).toContain(
    JSON.stringify('avg(signalbox_fan_speed_rpm{server_id="s1"})'),
  );
  await unmount(shown);
});

it('there is no file for Grafana without the servers, and the page says why', async () => {
  answers({
    '/api/v1/dashboards/{id}': () => answered(withFans),
    '/api/v1/views': () => answered([fans]),
    '/api/v1/servers': () => Promise.reject(new TypeError('network')),
    '/api/v1/metrics/fleet/names': () => answered({ names: [] }),
  });
  const failed = vi.spyOn(toasts, 'failed');
  const shown = mount(Dashboard, { target: document.body, props: { id: 'one' } });
  await vi.waitFor(() => expect(button(m.grafana())).toBeDefined());

  button(m.grafana())?.click();

  await vi.waitFor(() => expect(failed).toHaveBeenCalledWith(app.failed()));
  expect(saveFile).not.toHaveBeenCalled();
  await unmount(shown);
});

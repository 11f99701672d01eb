// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import * as m from '#messages/dashboards';
import { api } from '../../api/client';
import { router } from '../../router/router.svelte';
import { answered, withDialogs } from '../testing';
import Dashboard from './Dashboard.svelte';

// What draws charts asks the browser for more than jsdom has.
vi.mock('./Panel.svelte', () => ({ default: () => undefined }));
vi.mock('./AddView.svelte', () => ({ default: () => undefined }));
withDialogs();
afterEach(() => void vi.restoreAllMocks());

const dashboard = (name: string) => ({
  id: 'one',
  name,
  description: '',
  mine: true,
  shared_with: 'nobody',
  owner: { id: 'somebody', username: 'somebody' },
  layout: { panels: [], range: null },
});

it('what was saved is shown, though nothing can be read any more', async () => {
  let isBroken = false;
  vi.spyOn(api, 'GET').mockImplementation(((path: string) => {
    if (isBroken) return Promise.reject(new TypeError('network'));
    return Promise.resolve(answered(path === '/api/v1/dashboards/{id}' ? dashboard('Old') : []));
  }) as never);
  const put = vi.spyOn(api, 'PUT').mockResolvedValue(answered(dashboard('New')));
  router.set({ edit: '1' });
  const shown = mount(Dashboard, { target: document.body, props: { id: 'one' } });
  const button = (name: string) =>
    [...document.querySelectorAll('button')].find((one) => one.textContent?.trim() === name);
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

// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { router } from '../../../router/router.svelte';
import { waiting } from '../../testing';
import ChartLinks from './ChartLinks.svelte';

vi.stubGlobal('scrollTo', () => undefined);
afterEach(() => void vi.restoreAllMocks());

it('the way to a rule leads nobody away who has gone elsewhere by then', async () => {
  const watch = { metric: 'cpu', names: ['cpu_percent'] };
  const props = { server: 's', title: 'CPU', unit: 'percent', names: watch.names, watch, range: { key: '1h' } };
  const shown = mount(ChartLinks, { target: document.body, props: { ...props, refused: null } as never });
  const press = () => {
    router.go('/servers/s');
    const { answer, end } = waiting();
    vi.spyOn(api, 'GET').mockReturnValueOnce(answer);
    const button = document.querySelector('button');
    button?.click();
    flushSync();
    expect(button?.getAttribute('aria-disabled')).toBe('true');
    return async () => {
      end({ series: {} });
      await vi.waitFor(() => expect(button?.hasAttribute('aria-disabled')).toBe(false));
    };
  };

  const late = press();
  router.go('/servers/s/commands');
  await late();
  expect(router.path).toBe('/servers/s/commands');

  await press()();
  expect(router.path).toBe('/servers/s/alerts');
  await unmount(shown);
});

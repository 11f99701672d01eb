// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import * as m from '#messages/wall';
import { api } from '../../api/client';
import { alerts } from '../../live/alerts.svelte';
import { fleet } from '../../live/fleet.svelte';
import { answered } from '../testing';
import Side from './Side.svelte';

afterEach(() => {
  fleet.reset();
  alerts.isKnown = false;
  vi.restoreAllMocks();
});

it('says that all is well once the servers and the alerts are known', async () => {
  vi.spyOn(api, 'GET').mockResolvedValue(answered([]));
  const shown = mount(Side, { target: document.body });
  const isCalm = () => {
    flushSync();
    return document.body.textContent?.includes(m.calm());
  };

  expect(isCalm()).toBe(false);
  await fleet.load();
  expect(isCalm()).toBe(false);
  alerts.isKnown = true;
  expect(isCalm()).toBe(true);
  await unmount(shown);
});

// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { answered } from '../testing';
import { ViewData } from './data.svelte';
import type { Row } from './lines';
import LineTable from './LineTable.svelte';
import { queryOf, type Query } from './query';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  document.body.replaceChildren();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const query: Query = { ...queryOf(new URLSearchParams('s=cpu_percent&events=0')), events: false };
const answer = (...ids: string[]) => ({
  timestamps: [1],
  lines: ids.map((id) => ({
    name: 'cpu_percent',
    server_id: id,
    server_name: id,
    avg: [1],
    min: [1],
    max: [1],
    servers: [1],
  })),
});

it('lines keep their order and their colours while the same is asked', async () => {
  let first = answer('a', 'b', 'c');
  vi.spyOn(api, 'GET').mockImplementation(((path: string) =>
    Promise.resolve(answered(path.endsWith('/fleet/series') ? first : []))) as never);
  const none = () => undefined;
  const data = new ViewData(none, none);
  const drawn = () => data.drawn.rows.map(({ serverId, colour }) => [serverId, colour]);
  const stop = data.follow(query, 60);
  await vi.advanceTimersByTimeAsync(0);
  const before = drawn();
  expect(before.map(([id]) => id)).toEqual(['a', 'b', 'c']);

  first = answer('c', 'new', 'a', 'b');
  data.again();
  await vi.advanceTimersByTimeAsync(0);

  expect(drawn().slice(0, 3)).toEqual(before);
  expect(drawn()[3]?.[0]).toBe('new');
  stop();
  // Another question has an order of its own.
  const end = data.follow({ ...query, top: query.top + 1 }, 60);
  await vi.advanceTimersByTimeAsync(0);
  expect(drawn().map(([id]) => id)).toEqual(['c', 'new', 'a', 'b']);
  end();
});

it('rows stay where they are while one of them has the focus', async () => {
  const row = (id: string, max: number) =>
    ({ name: id, label: id, serverId: id, unit: 'percent', min: 0, mean: 0, max, last: 0, servers: 1 }) as Row;
  let rows = $state.raw([row('a', 2), row('b', 1)]);
  let asked = $state('one');
  const props = {
    get rows() {
      return rows;
    },
    get asked() {
      return asked;
    },
    counts: false,
  };
  const shown = mount(LineTable, { target: document.body, props });
  const names = () => [...document.querySelectorAll('tbody a')].map((link) => link.textContent);
  const read = (...next: Row[]) => {
    rows = next;
    flushSync();
  };
  flushSync();
  const link = document.querySelectorAll<HTMLElement>('tbody a')[1];
  link?.focus();

  read(row('a', 2), row('b', 3));

  expect(names()).toEqual(['a', 'b']);
  expect(document.activeElement).toBe(link);
  // Also when its line is none of those that rank first any more: it is not drawn, and has no values.
  read(row('a', 2), row('c', 3));
  expect(names()).toEqual(['a', 'b', 'c']);
  expect(document.activeElement).toBe(link);
  const values = [...document.querySelectorAll('tbody tr:nth-child(2) td')].map((cell) => cell.textContent);
  expect(values).toEqual(['–', '–', '–', '–']);
  // Another question has other lines.
  asked = 'another';
  read(row('c', 3), row('a', 2));
  expect(names()).toEqual(['c', 'a']);
  read(row('a', 2), row('b', 3));
  // Its heads sort it at once, and do not hold it.
  const head = document.querySelectorAll<HTMLElement>('thead button')[3];
  head?.focus();
  read(row('a', 2), row('b', 4));
  expect(names()).toEqual(['b', 'a']);
  await unmount(shown);
});

// @vitest-environment jsdom
import { mount, tick, unmount } from 'svelte';
import { expect, it } from 'vitest';
import { press } from '../testing';
import ChartChoice from './ChartChoice.svelte';
import { MOST_SERIES, queryOf, type Query } from './query';

it('the button after the chips has the focus once a pressed one is removed', async () => {
  const series = Array.from({ length: MOST_SERIES }, (_, index) => `s${index}`);
  let query = $state.raw<Query>({ ...queryOf(new URLSearchParams()), series, tag: 'web', servers: ['one'] });
  const props = {
    get query() {
      return query;
    },
    set: (changes: Partial<Query>) => (query = { ...query, ...changes }),
    pick: () => undefined,
  };
  const shown = mount(ChartChoice, { target: document.body, props });
  const remove = async (place: number) => {
    press(document.querySelectorAll('.chips')[place]?.querySelector<HTMLElement>('.chip button'));
    await tick();
    return document.querySelectorAll('.chips')[place]?.querySelector(':scope > button');
  };

  const added = await remove(0);
  expect(props.query.series).toHaveLength(MOST_SERIES - 1);
  expect(document.activeElement).toBe(added);
  for (const left of [1, 0]) {
    const chosen = await remove(1);
    expect((props.query.tag ? 1 : 0) + props.query.servers.length).toBe(left);
    expect(document.activeElement).toBe(chosen);
  }
  await unmount(shown);
});

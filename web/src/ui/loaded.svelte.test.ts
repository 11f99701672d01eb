import { expect, it } from 'vitest';
import { Loaded } from './form.svelte';

it('shows what a change has brought, and not the older answer that was on its way', async () => {
  let answer: (value: number) => void = () => undefined;
  const loaded = new Loaded(() => new Promise<number>((resolve) => (answer = resolve)));

  const reading = loaded.load();
  loaded.show(2);
  expect(loaded.busy).toBe(false);
  answer(1);
  await reading;

  expect([loaded.value, loaded.busy]).toEqual([2, false]);
});

it('has not failed any more when a change has brought it', async () => {
  const loaded = new Loaded<number>(() => Promise.reject(new TypeError('network')));
  await loaded.load();
  expect(loaded.failure).not.toBeNull();

  loaded.show(2);

  expect([loaded.value, loaded.failure]).toEqual([2, null]);
});

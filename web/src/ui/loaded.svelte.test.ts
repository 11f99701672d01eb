import { expect, it } from 'vitest';
import { Loaded } from './form.svelte';

it('shows what a change has brought, and not the answer that was on its way, which is asked for once more', async () => {
  const answers: ((value: number) => void)[] = [];
  const loaded = new Loaded(() => new Promise<number>((resolve) => answers.push(resolve)));

  const reading = loaded.load();
  loaded.show(2);
  answers[0]?.(1);
  await reading;
  expect([loaded.value, loaded.busy]).toEqual([2, true]);

  answers[1]?.(3);
  await expect.poll(() => [loaded.value, loaded.busy]).toEqual([3, false]);
  loaded.show(4);
  expect(answers).toHaveLength(2);
});

it('has not failed any more when a change has brought it', async () => {
  const loaded = new Loaded<number>(() => Promise.reject(new TypeError('network')));
  await loaded.load();
  expect(loaded.failure).not.toBeNull();

  loaded.show(2);

  expect([loaded.value, loaded.failure]).toEqual([2, null]);
});

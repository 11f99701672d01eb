import { expect, it, vi } from 'vitest';
import { Details } from './details.svelte';

const entries = (...ids: string[]) => ids.map((id) => ({ id, stamp: '1' }));

it('reads each entry once, a few at a time', async () => {
  const waits: (() => void)[] = [];
  const read = vi.fn((id: string) => new Promise<string>((done) => waits.push(() => done(`of ${id}`))));
  const details = new Details(read);

  details.want(entries('a', 'b', 'c', 'd'));
  details.want(entries('a', 'b', 'c', 'd'));
  expect(read).toHaveBeenCalledTimes(3);
  waits.shift()?.();

  await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(4));
  expect(details.of('a')).toBe('of a');
  expect(details.of('b')).toBeUndefined();
});

it('reads an entry again that has changed, and one that could not be read', async () => {
  const read = vi.fn().mockResolvedValueOnce('old').mockRejectedValueOnce(new Error('away')).mockResolvedValue('new');
  const details = new Details<string>(read);
  details.want([{ id: 'a', stamp: '1' }]);
  await vi.waitFor(() => expect(details.of('a')).toBe('old'));

  details.want([{ id: 'a', stamp: '2' }]);
  await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(2));
  await Promise.resolve();
  details.want([{ id: 'a', stamp: '2' }]);

  await vi.waitFor(() => expect(details.of('a')).toBe('new'));
});

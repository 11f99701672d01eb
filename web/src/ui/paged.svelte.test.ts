// @vitest-environment jsdom
import { flushSync } from 'svelte';
import { expect, test } from 'vitest';
import { Paged } from './paged.svelte';

function listOf(rows: { items: number[] }) {
  return new Paged<number>(
    async (offset, limit) => ({ items: rows.items.slice(offset, offset + limit), total: rows.items.length }),
    (item) => item,
    2,
  );
}

test('a list is read a page at a time', async () => {
  const list = listOf({ items: [5, 4, 3] });

  await list.load();
  expect(list.items).toEqual([5, 4]);
  expect(list.hasMore).toBe(true);

  await list.more();
  expect(list.items).toEqual([5, 4, 3]);
  expect(list.hasMore).toBe(false);
});

test('what is new between two pages makes nothing appear twice', async () => {
  const rows = { items: [5, 4, 3, 2] };
  const list = listOf(rows);
  await list.load();
  rows.items = [6, ...rows.items];

  await list.more();

  expect(list.items).toEqual([5, 4, 3]);
});

test('what a page has twice appears once', async () => {
  const list = listOf({ items: [5, 5, 4, 5, 4] });

  await list.load();
  expect(list.items).toEqual([5]);

  await list.more();
  expect(list.items).toEqual([5, 4]);
  expect(list.hasMore).toBe(true);

  await list.more();
  expect(list.items).toEqual([5, 4]);
  expect(list.hasMore).toBe(false);
});

test('what is asked for again is not known before its answer', async () => {
  const rows = { items: [] as number[] };
  const list = listOf(rows);
  await list.load();
  rows.items = [1];

  const answer = list.restart();
  expect(list.isKnown).toBe(false);
  await answer;

  expect(list.isKnown).toBe(true);
  expect(list.items).toEqual([1]);
});

test('a failure leaves what was there', async () => {
  const list = new Paged<number>(
    async (offset) => {
      if (offset > 0) throw new TypeError('network');
      return { items: [1], total: 2 };
    },
    (item) => item,
  );
  await list.load();

  await list.more();

  expect(list.items).toEqual([1]);
  expect(list.failure?.isPassing).toBe(true);
});

test('the page that could not be read is read again', async () => {
  let isBroken = true;
  const asked: number[] = [];
  const list = new Paged<number>(
    async (offset) => {
      asked.push(offset);
      if (offset > 0 && isBroken) throw new TypeError('network');
      return { items: [2 - offset], total: 2 };
    },
    (item) => item,
    1,
  );
  await list.load();
  await list.more();
  isBroken = false;

  await list.retry();

  expect(list.items).toEqual([2, 1]);
  expect(list.failure).toBeNull();
  expect(asked).toEqual([0, 1, 1]);
});

test('an effect that reads a list does not read it again because of its answer', async () => {
  let asked = 0;
  const list = new Paged<number>(
    async () => {
      // Without a bound, a failure of this test would never end.
      if (++asked > 3) throw new TypeError('network');
      return { items: [asked], total: 1 };
    },
    (item) => item,
  );

  const stop = $effect.root(() => {
    $effect(() => void list.load());
  });
  flushSync();
  await expect.poll(() => list.isKnown).toBe(true);
  flushSync();
  stop();

  expect(asked).toBe(1);
});

/** A list of which each read waits until its turn is ended. */
function heldList() {
  const reads: { offset: number; end: () => Promise<void> }[] = [];
  const list = new Paged<number>(
    (offset, limit) =>
      new Promise((resolve) => {
        const items = [5, 4, 3].slice(offset, offset + limit);
        const end = async () => {
          resolve({ items, total: 3 });
          await new Promise((done) => setTimeout(done));
        };
        reads.push({ offset, end });
      }),
    (item) => item,
    2,
  );
  const asked = () => reads.map(({ offset }) => offset);
  return { list, asked, end: async (index: number) => reads[index]?.end() };
}

test('only what somebody asked for keeps them from asking again', async () => {
  const { list, asked, end } = heldList();
  void list.load();
  expect([list.isReading, list.busy]).toEqual([true, false]);
  await end(0);
  expect([list.isReading, list.busy]).toEqual([false, false]);

  void list.more();
  expect([list.isReading, list.busy]).toEqual([true, true]);
  void list.more();
  void list.refresh();
  expect(asked()).toEqual([0, 2]);
  await end(1);
  expect([list.isReading, list.busy]).toEqual([false, false]);
  expect(list.items).toEqual([5, 4, 3]);

  void list.refresh();
  expect(list.busy).toBe(true);
});

test('a page that somebody asked for is not lost when the list is read again', async () => {
  const { list, asked, end } = heldList();
  void list.load();
  await end(0);

  void list.more();
  void list.load();
  void list.load();
  expect(asked()).toEqual([0, 2]);
  await end(1);

  expect(list.items).toEqual([5, 4, 3]);
  expect(asked()).toEqual([0, 2, 0]);
  expect(list.busy).toBe(false);
  await end(2);
  expect(list.items).toEqual([5, 4, 3]);
  expect(list.isReading).toBe(false);
});

test('a page is read at once, and what was being read is read after it', async () => {
  const { list, asked, end } = heldList();
  void list.load();
  await end(0);

  void list.load();
  void list.more();
  expect(asked()).toEqual([0, 0, 2]);
  await end(1);
  expect([list.isReading, list.busy]).toEqual([true, true]);
  await end(2);

  expect(list.items).toEqual([5, 4, 3]);
  expect(asked()).toEqual([0, 0, 2, 0]);
});

test('another question does not wait for what was asked before, whose answer is not taken', async () => {
  const { list, asked, end } = heldList();
  void list.load();
  await end(0);

  void list.more();
  void list.restart();
  expect(asked()).toEqual([0, 2, 0]);
  await end(1);
  expect(list.busy).toBe(true);
  await end(2);

  expect(list.items).toEqual([5, 4]);
  expect([list.isReading, list.busy]).toEqual([false, false]);
});

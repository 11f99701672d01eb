// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { takeAll, type Page } from './client';

/** A list of so many, of which at most `most` come at a time. */
function listOf(total: number, most = 500) {
  const asked: number[] = [];
  let open = 0;
  let peak = 0;
  const page = async (offset: number, limit: number): Promise<Page<number>> => {
    asked.push(offset);
    open += 1;
    peak = Math.max(peak, open);
    // The later ones come first.
    await new Promise((done) => setTimeout(done, 20 - (offset / total) * 20));
    open -= 1;
    const count = Math.max(0, Math.min(limit, most, total - offset));
    return { items: Array.from({ length: count }, (_, index) => offset + index), total };
  };
  return { page, asked, peak: () => peak };
}

describe('a whole list', () => {
  it('comes in its order, a few pages at a time once the first says how many there are', async () => {
    const list = listOf(10_000);

    const all = await takeAll(list.page);

    expect(all).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
    expect(list.asked[0]).toBe(0);
    expect(list.asked.length).toBe(20);
    expect(list.peak()).toBe(4);
  });

  it('is one page where that has all, and none where there is nothing', async () => {
    for (const total of [0, 1, 500]) {
      const list = listOf(total);
      expect((await takeAll(list.page)).length).toBe(total);
      expect(list.asked).toEqual([0]);
    }
  });

  it('is whole where pages are smaller than asked for', async () => {
    const list = listOf(250, 100);

    expect(await takeAll(list.page)).toEqual(Array.from({ length: 250 }, (_, index) => index));
  });
});

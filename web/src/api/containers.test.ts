// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import { api } from './client';
import { allContainers } from './containers';

afterEach(() => vi.restoreAllMocks());

interface Asked {
  params: { path: { server_id: string }; query: { limit: number; offset: number } };
}

/** A server with so many containers, and one more after each answer. Returns the offsets that are asked for. */
function growing(count: number): number[] {
  const offsets: number[] = [];
  let newest = count;
  vi.spyOn(api, 'GET').mockImplementation((async (_: string, { params }: Asked) => {
    const { limit, offset } = params.query;
    offsets.push(offset);
    const headers = { 'X-Total-Count': String(newest) };
    const all = Array.from({ length: newest }, (_, index) => ({ id: `${newest - index}` }));
    newest += 1;
    return { data: all.slice(offset, offset + limit), response: new Response(null, { headers }) };
  }) as never);
  return offsets;
}

it('all containers are one request where one page has them', async () => {
  const offsets = growing(500);

  expect(await allContainers('s')).toHaveLength(500);
  expect(offsets).toEqual([0]);
});

it('more containers than a page has are all there, each once, also when new ones move them on', async () => {
  const offsets = growing(1_200);

  const ids = (await allContainers('s')).map((one) => Number(one.id));

  expect(ids).toEqual(Array.from({ length: 1_200 }, (_, index) => 1_200 - index));
  expect(offsets).toEqual([0, 500, 1_000]);
});

// @vitest-environment jsdom
import { expect, it } from 'vitest';
import { collected } from './read';

/** A stream that gives pieces, and then ends or breaks off. */
function streamOf(pieces: string[], end: 'ends' | 'breaks off' = 'ends') {
  const left = [...pieces];
  const cancelled: boolean[] = [];
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      const piece = left.shift();
      if (piece !== undefined) controller.enqueue(new TextEncoder().encode(piece));
      else if (end === 'ends') controller.close();
      else controller.error(new TypeError('network error'));
    },
    cancel: () => void cancelled.push(true),
  });
  return { stream, left, cancelled };
}

it('a recording is all that came', async () => {
  expect((await collected(streamOf(['ab', 'c']).stream)).size).toBe(3);
  expect((await collected(undefined)).size).toBe(0);
});

it('a recording that is larger than one can be is not read to its end', async () => {
  const endless = streamOf(Array.from({ length: 1000 }, () => 'x'.repeat(100)));

  await expect(collected(endless.stream, 1000)).rejects.toMatchObject({ code: 'too_large' });

  expect(endless.cancelled).toEqual([true]);
  expect(endless.left.length).toBeGreaterThan(980);
  expect((await collected(streamOf(['x'.repeat(1000)]).stream, 1000)).size).toBe(1000);
});

it('a recording that was interrupted while it was read is none', async () => {
  await expect(collected(streamOf(['ab'], 'breaks off').stream)).rejects.toMatchObject({ code: 'broke_off' });
});

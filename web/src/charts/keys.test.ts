import { expect, it } from 'vitest';
import { placeAfter } from './keys';

const at = { present: 50, from: 10, until: 100, stride: 1, isAway: false };

it('arrows go from point to point, pages a tenth of what is shown', () => {
  expect(placeAfter('ArrowLeft', at)).toBe(49);
  expect(placeAfter('ArrowRight', { ...at, stride: 10 })).toBe(60);
  expect(placeAfter('PageUp', at)).toBe(41);
});

it('the cursor stays within what is shown', () => {
  expect(placeAfter('ArrowLeft', { ...at, present: 10 })).toBe(10);
  expect(placeAfter('ArrowRight', { ...at, present: 99 })).toBe(99);
  expect([placeAfter('Home', at), placeAfter('End', at)]).toEqual([10, 99]);
});

it('a cursor that was not shown begins where it is', () => {
  expect(placeAfter('ArrowLeft', { ...at, isAway: true })).toBe(50);
});

it('other keys do not move it', () => {
  expect(placeAfter('a', at)).toBeNull();
});

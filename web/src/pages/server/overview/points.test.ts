import { expect, it } from 'vitest';
import { pointsFor } from './points';

it('asks for what the screen can show', () => {
  expect(pointsFor(86_400, 390)).toBe(240);
  expect(pointsFor(86_400, 1_440)).toBe(720);
  expect(pointsFor(86_400, 5_000)).toBe(900);
});

it('asks for every sample of a short range', () => {
  expect(pointsFor(300, 390)).toBe(900);
});

import { expect, it } from 'vitest';
import { messageOf } from './message';

it('begins a message as a sentence begins', () => {
  expect(messageOf({ message: 'cpu is 97 % on web-1' })).toBe('CPU is 97 % on web-1');
  expect(messageOf({ message: 'disk / is 97 % full' })).toBe('Disk / is 97 % full');
});

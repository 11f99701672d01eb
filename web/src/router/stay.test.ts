// @vitest-environment jsdom
import { expect, it } from 'vitest';
import { router } from './router.svelte';
import { staying } from './stay';

const go = (address: string) => router.go(address, { keepScroll: true });

it('who goes to another page has left, and who changes what this one shows has not', () => {
  go('/explore?view=one');
  const [isHere, isAtView] = [staying(), staying('view')];

  go('/explore?view=one&range=1h');
  expect([isHere(), isAtView()]).toEqual([true, true]);
  go('/explore?view=two');
  expect([isHere(), isAtView()]).toEqual([true, false]);
  go('/');
  expect([isHere(), isAtView()]).toEqual([false, false]);
  go('/explore?view=one');
  expect([isHere(), isAtView()]).toEqual([true, true]);
});

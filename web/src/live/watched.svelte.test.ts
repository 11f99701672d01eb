// @vitest-environment jsdom
import { flushSync, untrack } from 'svelte';
import { expect, it } from 'vitest';
import { Watched } from './watched.svelte';

it('what depends on a value follows it, however often it is set in between', () => {
  const watched = new Watched(1);
  const seen: number[] = [];
  const doubled: number[] = [];
  const end = $effect.root(() => {
    const double = $derived(watched.value * 2);
    $effect(() => void seen.push(watched.value));
    $effect(() => void doubled.push(double));
  });
  flushSync();

  for (const value of [2, 3, 3]) watched.value = value;
  flushSync();
  watched.value = 4;
  flushSync();

  expect(seen).toEqual([1, 3, 4]);
  expect(doubled).toEqual([2, 6, 8]);
  end();
});

it('a value that is read again only after a while is the newest', () => {
  const watched = new Watched('a');
  let isOpen = $state(true);
  const seen: string[] = [];
  const end = $effect.root(() => {
    $effect(() => {
      if (isOpen) seen.push(watched.value);
    });
  });
  flushSync();
  isOpen = false;
  flushSync();
  watched.value = 'b';
  watched.value = 'c';
  isOpen = true;
  flushSync();
  watched.value = 'd';
  flushSync();

  expect(seen).toEqual(['a', 'c', 'd']);
  end();
});

it('a derived value that nobody follows is up to date when it is read', () => {
  const watched = new Watched(1);
  const double = $derived(watched.value * 2);
  const read: number[] = [];

  for (const value of [1, 2, 3]) {
    watched.value = value;
    read.push(double);
  }

  expect(read).toEqual([2, 4, 6]);
});

it('an untracked reader does not follow it', () => {
  const watched = new Watched(1);
  let runs = 0;
  const end = $effect.root(() => {
    $effect(() => {
      untrack(() => watched.value);
      runs += 1;
    });
  });
  flushSync();

  watched.value = 2;
  flushSync();

  expect(runs).toBe(1);
  end();
});

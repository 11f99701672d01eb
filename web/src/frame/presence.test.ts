// @vitest-environment jsdom
import { expect, test, vi } from 'vitest';
import { session } from '../session/session.svelte';
import { keep } from '../text/kept';
import { keepPushed } from './presence.svelte';

const part = vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
  let come: (module: object) => void = () => undefined;
  const coming = new Promise<object>((resolve) => (come = resolve));
  return { coming, come: (module: object) => come(module) };
});

vi.mock('../notices/push', () => part.coming);

test('a sign-out before the part of push messages has come ends them first', async () => {
  const done: string[] = [];
  vi.stubGlobal('fetch', async ({ url }: Request) => {
    if (url.endsWith('/logout')) done.push('signed out');
    return new Response(null, { status: 204 });
  });
  keep('push', '{}');
  keepPushed();

  const left = session.signOut();
  part.come({ keepUp: async () => undefined, unsubscribe: async () => void done.push('unsubscribed') });
  await left;

  expect(done).toEqual(['unsubscribed', 'signed out']);
});

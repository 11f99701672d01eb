// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { service } from './service.svelte';

beforeEach(() => {
  vi.useFakeTimers();
  service.info = null;
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test('nobody waits long for what the service tells, and it is there when it comes', async () => {
  const fetched = vi.fn((_: string, { signal }: RequestInit) => {
    return new Promise<Response>((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(new DOMException('too late', 'TimeoutError')));
      setTimeout(() => resolve(Response.json({ needs_setup: true })), 5_000);
    });
  });
  vi.stubGlobal('fetch', fetched);
  let isOpen = false;
  expect(service.isAwaited).toBe(false);
  void service.load().then(() => (isOpen = true));

  await vi.advanceTimersByTimeAsync(2_900);
  expect(isOpen).toBe(false);
  // Another part of the page asks nothing else.
  void service.load();
  await vi.advanceTimersByTimeAsync(200);
  expect(isOpen).toBe(true);
  expect(service.info).toBeNull();
  expect(service.isAwaited).toBe(true);

  await vi.advanceTimersByTimeAsync(2_000);
  expect(service.info?.needs_setup).toBe(true);
  expect(service.isAwaited).toBe(false);
  expect(fetched).toHaveBeenCalledTimes(1);
});

test('a question that hangs is not waited for by the next page', async () => {
  const answers = [new Promise<Response>(() => undefined), Promise.resolve(Response.json({ version: '1.0.0' }))];
  vi.stubGlobal('fetch', () => answers.shift());
  void service.load();
  await vi.advanceTimersByTimeAsync(3_000);

  await service.load();

  expect(service.info?.version).toBe('1.0.0');
});

test('a service that was away is asked again', async () => {
  const answers = [Promise.reject(new TypeError('no network')), Promise.resolve(Response.json({ version: '1.0.0' }))];
  vi.stubGlobal('fetch', () => answers.shift());

  await service.load();
  expect(service.info).toBeNull();
  expect(service.isAwaited).toBe(false);
  await service.load();

  expect(service.info?.version).toBe('1.0.0');
});

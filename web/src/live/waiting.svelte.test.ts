// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import type { ApprovalSummary } from '../api/types';
import { waiting } from './waiting.svelte';

type Page = { items: ApprovalSummary[]; total: number };
const answers: ((page: Page) => void)[] = vi.hoisted(() => []);
vi.mock(import('../api/client'), async (original) => ({
  ...(await original()),
  api: { GET: () => undefined } as never,
  takePage: (() => new Promise<Page>((resolve) => answers.push(resolve))) as never,
}));

const one = [{ id: 'one', signatures: [] }] as unknown as ApprovalSummary[];

afterEach(() => void answers.splice(0));

it('keeps nothing while nobody watches: the next account must not see it', async () => {
  const stop = waiting.watchEvery(60_000);
  await expect.poll(() => answers.length).toBe(1);
  answers[0]?.({ items: one, total: 1 });
  await expect.poll(() => waiting.value?.length).toBe(1);
  // Asked for again, and left before the answer comes.
  const asked = waiting.load();
  await expect.poll(() => answers.length).toBe(2);

  stop();
  expect(waiting.value).toBeNull();
  answers[1]?.({ items: one, total: 1 });
  await asked;
  expect(waiting.value).toBeNull();

  await waiting.load();
  waiting.show(one);
  expect(answers).toHaveLength(2);
  expect(waiting.value).toBeNull();
});

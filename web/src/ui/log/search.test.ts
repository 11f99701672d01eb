// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/log';
import { Lines } from './lines';
import { answer, READY, type Question } from './pattern';
import { Search } from './search.svelte';
import { lines as linesOf } from './testing';

/** A worker that begins when `ready` is called. */
class FakeWorker {
  static all: FakeWorker[] = [];
  onmessage: (event: { data: unknown }) => void = () => undefined;
  onerror: () => void = () => undefined;
  readonly asked: Question[] = [];
  isEnded = false;

  constructor() {
    FakeWorker.all.push(this);
  }

  postMessage(question: Question): void {
    this.asked.push(question);
  }

  terminate(): void {
    this.isEnded = true;
  }

  ready(): void {
    this.onmessage({ data: READY });
  }

  answer(): void {
    const question = this.asked.at(-1);
    if (question) this.onmessage({ data: answer(question) });
  }
}

const worker = (index: number): FakeWorker => {
  const found = FakeWorker.all[index];
  if (!found) throw new Error('there is no such worker');
  return found;
};

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('Worker', FakeWorker);
  FakeWorker.all = [];
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function searched() {
  const held = new Lines();
  for (const line of linesOf('one needle', 'hay', 'needle two')) held.push(line);
  return new Search(held, { found: () => undefined, restarted: () => undefined });
}

it('waits for its worker however long that takes to come, and keeps it while somebody types', async () => {
  const search = searched();

  search.set('nee', false);
  await vi.advanceTimersByTimeAsync(10_000);
  search.set('needle', false);
  await vi.advanceTimersByTimeAsync(10_000);
  expect([search.fault, search.busy]).toEqual([null, true]);
  worker(0).ready();
  worker(0).answer();

  expect(FakeWorker.all).toHaveLength(1);
  expect(worker(0).asked.map(({ source }) => source)).toEqual(['needle']);
  expect([search.numbers(), search.busy]).toEqual([[0, 2], false]);
});

it('gives up an expression that takes too long, once its worker is there', async () => {
  const search = searched();
  search.set('needle', false);
  worker(0).ready();

  await vi.advanceTimersByTimeAsync(2_000);

  expect([search.fault, worker(0).isEnded]).toEqual([m.slow(), true]);
});

it('gives up an expression that is being worked on when another one is typed', () => {
  const search = searched();
  search.set('needle', false);
  worker(0).ready();

  search.set('hay', false);
  worker(0).ready();
  expect([worker(0).isEnded, worker(1).asked]).toEqual([true, []]);
  worker(1).ready();
  worker(1).answer();

  expect(search.numbers()).toEqual([1]);
});

it('says that its worker could not be loaded, and loads it again for what is typed next', () => {
  const search = searched();
  search.set('needle', false);

  worker(0).onerror();
  expect([search.fault, search.busy]).toEqual([m.noSearch(), false]);
  search.set('hay', false);
  worker(1).ready();
  worker(1).answer();

  expect([search.fault, search.numbers()]).toEqual([null, [1]]);
});

// @vitest-environment jsdom
import { beforeEach, expect, it, vi } from 'vitest';
import type { Message } from '../../../live/socket.svelte';
import { Shell } from './shell.svelte';

interface Events {
  open(): void;
  message(message: Message): void;
}

/** The latest line, and what was typed into it. */
const line = vi.hoisted(() => ({ events: null as Events | null, typed: [] as string[] }));
vi.mock('./line', () => ({
  Line: class {
    backlog = 0;
    constructor(_: string, __: unknown, events: Events) {
      line.events = events;
    }
    open() {}
    resume() {}
    close() {}
    send({ type, data }: { type: string; data: { data: string } }) {
      if (type === 'input') line.typed.push(data.data);
      return true;
    }
  },
}));

/** A program asks the terminal where the cursor is, and it answers. */
const QUERY = '\x1b[6n';

beforeEach(() => {
  line.typed = [];
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {} }));
});

it.each([
  ['a new terminal answers what programs ask', null, 2],
  ['a page that was loaded again answers only what it has not seen before', 5 + QUERY.length, 1],
])('%s', async (_, bytes, answers) => {
  const shell = new Shell({ fontSize: 14, screenReaderMode: false, leave: () => undefined });
  const element = document.body.appendChild(document.createElement('div'));
  const ticket = bytes === null ? null : { terminalId: 'one', secret: 'secret', bytes, until: Date.now() + 60_000 };
  const close = shell.open('web-1', element, { signed: null, ticket });
  line.events?.open();

  line.events?.message({ type: 'output', data: { data: 'ab', offset: 0 } });
  line.events?.message({ type: 'output', data: { data: `cde${QUERY}f${QUERY}`, offset: 2 } });
  await new Promise<void>((resolve) => shell.terminal.write('', resolve));

  const expected = ['\x1b[1;6R', '\x1b[1;7R'];
  expect(line.typed).toEqual(expected.slice(expected.length - answers));
  shell.type('ls');
  expect(line.typed.at(-1)).toBe('ls');
  close();
});

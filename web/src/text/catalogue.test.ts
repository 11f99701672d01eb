// @vitest-environment node
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SOURCE, compile, faults, read } from '../../build/messages.mjs';
import { areasOf, readTooEarly, textsOutside } from '../../build/outside.mjs';

const SRC = join(SOURCE, '..', 'src');
const catalogue = read(SOURCE);
const sources = new Map(
  readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(svelte|ts)$/.test(path) && !path.endsWith('.test.ts'))
    .sort()
    .map((path) => [path, readFileSync(join(SRC, path), 'utf8')]),
);

describe('the catalogue', () => {
  it('says everything in every language, with the same values', () => {
    expect(faults(catalogue)).toEqual([]);
  });

  it('has no message that nobody reads', () => {
    const read = new Set(
      [...sources.values()].flatMap((source) =>
        Object.entries(areasOf(source)).flatMap(([name, area]) =>
          [...source.matchAll(new RegExp(`\\b${name}\\.(\\w+)`, 'g'))].map(([, key]) => `${area}.${key}`),
        ),
      ),
    );
    const all = Object.entries(catalogue.en ?? {}).flatMap(([area, messages]) =>
      Object.keys(messages).map((key) => `${area}.${key}`),
    );

    expect(all.filter((key) => !read.has(key))).toEqual([]);
  });

  it('has every text that people read', { timeout: 120_000 }, () => {
    // What people type in any language is read, not shown; names of fonts and what tests have in common are neither.
    const others = [join('charts', 'vocabulary.ts'), join('charts', 'font.ts'), join('moment', 'testing.ts')];
    const shown = [...sources].filter(([path]) => !others.includes(path));
    const found = shown.flatMap(([path, source]) =>
      textsOutside(path, source).map(({ line, text }) => `src/${path}:${line}: ${text}`),
    );

    expect(found).toEqual([]);
  });

  it('is read once its language has come: never while a module is loaded', { timeout: 120_000 }, () => {
    const early = [...sources]
      .filter(([path]) => path.endsWith('.ts'))
      .flatMap(([path, source]) => readTooEarly(source).map(({ line, text }) => `src/${path}:${line}: ${text}`));

    expect(early).toEqual([]);
  });
});

describe('what is wrong with a catalogue', () => {
  const faultsOf = (en: Record<string, string>, de: Record<string, string>) => faults({ en: { a: en }, de: { a: de } });

  it('is a message that a language lacks, or has alone', () => {
    expect(faultsOf({ one: 'One' }, { two: 'Zwei' })).toEqual([
      'messages/de/a.json: one: is missing',
      'messages/de/a.json: two: en has no such message',
    ]);
  });

  it('is a value that a language does not know', () => {
    expect(faultsOf({ one: '{name} and {count, number}' }, { one: '{name} und {count}' })).toEqual([
      'messages/de/a.json: one: takes count: string, name: string, and count: number, name: string in en',
    ]);
  });

  it('is a message that cannot be read', () => {
    expect(faultsOf({ one: 'One {' }, { one: 'Eins' })).toHaveLength(2);
    expect(faultsOf({ delete: 'x' }, { delete: 'x' })).toHaveLength(2);
  });
});

it('a catalogue becomes a function a message', () => {
  const files = compile({
    en: {
      a: {
        plain: "It's `a`",
        many: '{count, plural, =0 {none} one {# server} other {# servers}}',
        code: 'run <code>{it}</code> now',
      },
    },
    de: {
      a: { plain: 'Ja', many: '{count, plural, one {# Server} other {# Server}}', code: '<code>{it}</code> starten' },
    },
  });

  expect(files.get('a.ts')).toContain("export const plain = (): string => t<string>(0) ?? `It's \\`a\\``;");
  expect(files.get('a.ts')).toContain(
    "(v: { count: number }): string => t<string>(1, v) ?? `${(v.count === 0 ? `none` : p(v.count) === 'one' ? `${n(v.count)} server` : `${n(v.count)} servers`)}`;",
  );
  expect(files.get('a.ts')).toContain(
    "(v: { it: string }): Rich<'code'> => t<Rich<'code'>>(2, v) ?? [`run `, ['code', `${v.it}`], ` now`];",
  );
  expect(files.get('de/a.ts')).toContain("(n, rule) => {\n  const p = rule('de');");
  expect(files.get('languages.ts')).toContain("['en', 'de']");
});

describe('a text that stands in a component', () => {
  const texts = (source: string) => textsOutside('A.svelte', source).map(({ text }) => text);

  it('is found in the markup, and in what is read aloud', () => {
    expect(texts('<p>Save</p><input placeholder="Name" class="input" /><b>{done ? "All done" : ""}</b>')).toEqual([
      'Save',
      'Name',
      'All done',
    ]);
    expect(texts('<a href="/alerts" class="All of this">{m.all()} · {count}</a>')).toEqual([]);
  });

  it('is found in code', () => {
    const code =
      'const a = { label: "on", kind: "on" }; const b = `${count} servers`; const c = `/servers/${id}`; throw new Error("not so")';
    expect(textsOutside('a.ts', code).map(({ text }) => text)).toEqual(['on', '`${count} servers`']);
  });
});

it('a message that is read while a module is loaded is found', () => {
  const code =
    "import * as m from '#messages/a';\nconst early = { a: m.a() };\nconst late = { a: m.a, b: () => m.a() };\n";

  expect(readTooEarly(code)).toEqual([{ line: 2, text: 'm.a()' }]);
});

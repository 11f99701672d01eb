// @vitest-environment node
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { PICTURES } from './pictures.mjs';

const root = join(import.meta.dirname, '../..');
const taken = PICTURES.map(({ name }: { name: string }) => `docs/images/${name}.webp`);

function documents(): string[] {
  const found = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
  return ['README.md', ...found.filter((file) => file.endsWith('.md')).map((file) => join('docs', file))];
}

/** The pictures of a document, by their paths in the repository. */
function shown(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8');
  const names = [...text.matchAll(/[(\s:]((?:[\w./-]+\/)?images\/[\w.-]+)/g)].map((match) => match[1] ?? '');
  return names.map((name) => relative(root, join(root, dirname(document), name)));
}

test('each picture that a document shows is made by the script', () => {
  const strange = documents().flatMap((document) =>
    shown(document)
      .filter((picture) => !taken.includes(picture))
      .map((picture) => `${document}: ${picture}`),
  );

  expect(strange).toEqual([]);
});

test('each picture is there, is small, and is shown somewhere', () => {
  const images = readdirSync(join(root, 'docs/images')).map((name) => `docs/images/${name}`);
  const seen = new Set(documents().flatMap(shown));

  expect(images.sort()).toEqual([...taken].sort());
  expect(taken.filter((picture: string) => !seen.has(picture))).toEqual([]);
  expect(taken.filter((picture: string) => statSync(join(root, picture)).size > 150_000)).toEqual([]);
});

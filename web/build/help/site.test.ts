import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { helpAddress, helpTopics, type HelpTopic } from '../../src/ui/help';
import { pageOf } from './frame';
import { indexOf } from './index';
import { readDocuments, siteOf } from './site';

const REPOSITORY = join(import.meta.dirname, '../../..');

const siteFrom = (documents: Record<string, string>) => siteOf(new Map(Object.entries(documents)), (file) => file);
const ofRepository = siteOf(readDocuments(REPOSITORY), (file) => file);

const README = '# Signalbox\n\nSee and run.\n\n| | |\n|---|---|\n\n## Why\n\nA promise.\n\n## Try it\n\nmake run\n';
const INDEX =
  '# Documents\n\nStart with [the first](start.md).\n\n## Guides\n\n| | |\n|---|---|\n| [B](b.md) | b |\n| [C](../C.md) | c |\n';

test('the documents of this repository have no broken link', () => {
  expect(ofRepository.faults).toEqual([]);
  expect(ofRepository.pages.length).toBeGreaterThan(20);
});

test('what documents name in the source is there', () => {
  const sources = ofRepository.pages.flatMap(({ links }) =>
    links.flatMap(({ from, target }) => (target.kind === 'source' ? [{ from, file: target.file }] : [])),
  );

  expect(sources.length).toBeGreaterThan(0);
  expect(sources.filter(({ file }) => !existsSync(join(REPOSITORY, file)))).toEqual([]);
});

test('every link of the interface leads to a page, and to a heading of it', () => {
  const { pages } = ofRepository;
  const topics = Object.keys(helpTopics) as HelpTopic[];

  const broken = topics.map(helpAddress).filter((address) => {
    const [path, anchor] = address.split('#');
    const page = pages.find((one) => one.address === path);
    return !page || (anchor !== undefined && !page.headings.some(({ id }) => id === anchor));
  });

  expect(broken).toEqual([]);
});

test('the first page of this repository says what Signalbox is, and why', () => {
  const [index] = ofRepository.pages;

  expect(index?.headings.map(({ text }) => text)).toContain('Why');
  expect(index?.html).toContain('self-hosted');
});

test('pages stand in the order of the index, below its headings', () => {
  const site = siteFrom({ 'README.md': README, 'docs/README.md': INDEX, 'docs/start.md': '# S', 'docs/b.md': '# B' });

  expect(site.faults).toEqual([]);
  expect(site.pages.map(({ address }) => address)).toEqual(['/help', '/help/start', '/help/b']);
  expect(site.groups).toEqual([
    { title: 'Start', pages: [{ file: 'docs/start.md', label: 'the first' }] },
    { title: 'Guides', pages: [{ file: 'docs/b.md', label: 'B' }] },
  ]);
});

test('the first page has what README.md begins with, and no rows about the source', () => {
  const site = siteFrom({ 'README.md': README, 'docs/README.md': INDEX, 'docs/start.md': '# S', 'docs/b.md': '# B' });

  const html = site.pages[0]?.html ?? '';
  expect(html).toMatch(/^<h1 id="documents">Documents<\/h1>\s*<p>See and run\.<\/p>/);
  expect(html).toContain('A promise.');
  expect(html).not.toContain('make run');
  expect(html).not.toContain('C.md');
});

test('a broken link, a document that is not listed and a missing heading are named', () => {
  const site = siteFrom({
    'README.md': README,
    'docs/README.md': '# D\n\n[s](start.md) [gone](gone.md)',
    'docs/start.md': '# S\n\n[a](#nope) [b](other.md#here) [c](README.md#d)',
    'docs/other.md': 'no heading',
  });

  expect(site.faults).toEqual([
    'docs/other.md: docs/README.md does not link to it',
    'docs/README.md: the link gone.md leads to no document',
    'docs/start.md: the link #nope leads to no heading of docs/start.md',
    'docs/start.md: the link other.md#here leads to no document',
  ]);
});

test('a page has the list of all, its parts, and the way to the next', () => {
  const start = '# S\n\n## One\n\n### Two & three\n\n#### Four\n';
  const site = siteFrom({ 'README.md': README, 'docs/README.md': INDEX, 'docs/start.md': start, 'docs/b.md': '# B' });
  const page = site.pages[1];
  if (!page) throw new Error('there is no second page');

  const html = pageOf('{{title}}|{{pages}}|{{turn}}|{{contents}}|{{search}}', site, page, '/assets/i.json');

  const [title, pages, turn, contents, search] = html.split('|');
  expect(title).toBe('S');
  expect(pages).toContain('<a href="/help/start" aria-current="page">the first</a>');
  expect(turn).toContain('<a rel="prev" href="/help"><span>Previous</span>Overview</a>');
  expect(turn).toContain('<a rel="next" href="/help/b"><span>Next</span>B</a>');
  expect(contents).toContain('<li class="depth-3"><a href="#two--three">Two &amp; three</a></li>');
  expect(contents).not.toContain('Four');
  expect(search).toBe('/assets/i.json');
});

test('a template that asks for what is not there is an error', () => {
  const site = siteFrom({ 'README.md': README, 'docs/README.md': '# D' });
  const page = site.pages[0];
  if (!page) throw new Error('there is no page');

  expect(() => pageOf('{{nope}}', site, page, '')).toThrow('{{nope}}');
  expect(() => pageOf('{{icon:nope}}', site, page, '')).toThrow('{{icon:nope}}');
});

test('the index of the search has every section of every page', () => {
  const site = siteFrom({
    'README.md': README,
    'docs/README.md': INDEX,
    'docs/start.md': '# S\n\na\n\n## One\n\nb',
    'docs/b.md': '# B',
  });

  expect(indexOf(site)[1]).toEqual({
    address: '/help/start',
    title: 'S',
    sections: [
      ['', '', 'a'],
      ['one', 'One', 'b'],
    ],
  });
});

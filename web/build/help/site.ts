import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import type { Token, Tokens } from 'marked';
import { INDEX, addressOf, isPage, targetOf } from './address.ts';
import { blocksOf, plain, render, type Block, type ImageAddress, type Rendered } from './document.ts';

/** A page of the help: a document of `docs/`. */
export interface Page extends Rendered {
  file: string;
  address: string;
  /** What the list of all pages calls it. */
  label: string;
}

export interface Group {
  title: string;
  pages: { file: string; label: string }[];
}

export interface Site {
  /** In the order in which they are read, the index first. */
  pages: Page[];
  groups: Group[];
  /** What is wrong with the documents, one line each. */
  faults: string[];
}

/** The documents by their files: `docs/start.md`, and README.md. */
export type Documents = Map<string, string>;

const README = 'README.md';
/** The section of README.md that the first page of the help shows, too. */
const WHY = 'Why';

/** Reads what the help is made of from a repository. */
export function readDocuments(repository: string): Documents {
  const docs = readdirSync(join(repository, 'docs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(repository, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter(isPage);
  return new Map([README, ...docs].map((file) => [file, readFileSync(join(repository, file), 'utf8')]));
}

export function siteOf(documents: Documents, imageAddress: ImageAddress): Site {
  const indexBlocks = blocksOf(INDEX, documents.get(INDEX) ?? '');
  const groups = groupsOf(indexBlocks);
  const listed = groups.flatMap(({ pages }) => pages).filter(({ file }) => documents.has(file));
  const index = { file: INDEX, label: 'Overview', blocks: indexPage(indexBlocks, documents.get(README) ?? '') };
  const others = listed.map(({ file, label }) => ({ file, label, blocks: blocksOf(file, documents.get(file) ?? '') }));
  const pages = [index, ...others].map(({ file, label, blocks }) => ({
    file,
    address: addressOf(file),
    label,
    ...render(blocks, imageAddress),
  }));
  return { pages, groups, faults: [...missing(documents, groups), ...pages.flatMap((page) => faultsOf(page, pages))] };
}

/** The list of all pages, as the index has it: its headings, and the documents that it links to below each. */
function groupsOf(index: Block[]): Group[] {
  const groups: Group[] = [{ title: 'Start', pages: [] }];
  const known = new Set<string>([INDEX]);
  for (const { token, from } of index) {
    if (token.type === 'heading' && token.depth === 2) groups.push({ title: plain(token.tokens), pages: [] });
    for (const { href, tokens } of linksIn(token)) {
      const target = targetOf(from, href);
      if (target.kind !== 'page' || known.has(target.file)) continue;
      known.add(target.file);
      groups.at(-1)?.pages.push({ file: target.file, label: plain(tokens) });
    }
  }
  return groups.filter(({ pages }) => pages.length > 0);
}

/** The index with what README.md says to somebody who has never heard of it. */
function indexPage(index: Block[], readme: string): Block[] {
  const blocks = index.map(({ token, from }) => ({ token: withoutSources(token, from), from }));
  const about = blocksOf(README, readme);
  const second = about.findIndex(({ token }) => isSecondHeading(token));
  const lead = about.slice(0, second).filter(({ token }) => token.type === 'paragraph');
  const [title, ...rest] = blocks;
  return title ? [title, ...lead, ...rest, ...sectionOf(about, WHY)] : [];
}

function isSecondHeading(token: Token): boolean {
  return token.type === 'heading' && token.depth === 2;
}

function sectionOf(blocks: Block[], heading: string): Block[] {
  const start = blocks.findIndex(
    ({ token }) => isSecondHeading(token) && plain((token as Tokens.Heading).tokens) === heading,
  );
  if (start < 0) return [];
  const length = blocks.slice(start + 1).findIndex(({ token }) => isSecondHeading(token));
  return length < 0 ? blocks.slice(start) : blocks.slice(start, start + 1 + length);
}

/** Rows of a table that are about files of the repository are of no use in a service. */
function withoutSources(token: Token, from: string): Token {
  if (token.type !== 'table') return token;
  const table = token as Tokens.Table;
  const isOfUse = ([first]: Tokens.TableCell[]) =>
    (first?.tokens ?? []).flatMap(linksIn).every(({ href }) => targetOf(from, href).kind !== 'source');
  return { ...table, rows: table.rows.filter(isOfUse) };
}

function linksIn(token: Token): Tokens.Link[] {
  if (token.type === 'link') return [token as Tokens.Link];
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table;
    return [header, ...rows].flat().flatMap((cell) => cell.tokens.flatMap(linksIn));
  }
  if (token.type === 'list') return (token as Tokens.List).items.flatMap((item) => item.tokens.flatMap(linksIn));
  return 'tokens' in token ? (token.tokens ?? []).flatMap(linksIn) : [];
}

function missing(documents: Documents, groups: Group[]): string[] {
  const listed = new Set(groups.flatMap(({ pages }) => pages).map(({ file }) => file));
  const unlisted = [...documents.keys()].filter((file) => isPage(file) && file !== INDEX && !listed.has(file));
  return unlisted.map((file) => `${file}: ${INDEX} does not link to it`);
}

function faultsOf(page: Page, pages: Page[]): string[] {
  const faults = page.links.flatMap(({ from, href, target }) => {
    if (target.kind !== 'page') return [];
    const found = pages.find(({ file }) => file === target.file);
    if (!found) return [`${from}: the link ${href} leads to no document`];
    const isThere = !target.anchor || found.headings.some(({ id }) => id === target.anchor);
    return isThere ? [] : [`${from}: the link ${href} leads to no heading of ${target.file}`];
  });
  const count = page.headings.filter(({ depth }) => depth === 1).length;
  return count === 1
    ? faults
    : [...faults, `${page.file}: a document has one heading of the first level, not ${count}`];
}

import { icons, type IconName } from '../../src/ui/icons.ts';
import { addressOf, INDEX } from './address.ts';
import { escape } from './document.ts';
import type { Page, Site } from './site.ts';

/** Headings that the list of a page's parts has. */
const LISTED_DEPTHS = [2, 3];

/** What `/help/...` gets that nobody knows. */
export const UNKNOWN = {
  title: 'Page not found',
  html: '<h1>Page not found</h1>\n<p>There is no help page at this address. Search, or choose a page from the list.</p>\n',
};

/** Puts a document into the frame of all pages: `help/page.html`. */
export function pageOf(template: string, site: Site, page: Page, search: string): string {
  return fill(template, {
    title: escape(page.title),
    pages: listOf(site, page.file),
    body: page.html,
    turn: turnOf(site, page),
    contents: contentsOf(page),
    search: escape(search),
  });
}

export function unknownPage(template: string, site: Site, search: string): string {
  const { title, html } = UNKNOWN;
  return fill(template, { title, pages: listOf(site, ''), body: html, turn: '', contents: '', search: escape(search) });
}

function fill(template: string, values: Record<string, string>): string {
  return template.replace(/\{\{([a-z]+)(?::([a-z]+))?\}\}/g, (whole, name: string, given?: string) => {
    const value = name === 'icon' ? iconOf(given) : values[name];
    if (value === undefined) throw new Error(`help/page.html asks for ${whole}`);
    return value;
  });
}

function iconOf(name: string | undefined): string | undefined {
  const path = icons[name as IconName];
  return path && `<svg width="16" height="16" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}" /></svg>`;
}

function listOf(site: Site, current: string): string {
  const item = (file: string, label: string) => {
    const mark = file === current ? ' aria-current="page"' : '';
    return `<li><a href="${addressOf(file)}"${mark}>${escape(label)}</a></li>`;
  };
  const groups = site.groups.map(({ title, pages }) => {
    const items = pages.map(({ file, label }) => item(file, label)).join('');
    return `<h2>${escape(title)}</h2><ul>${items}</ul>`;
  });
  return `<ul>${item(INDEX, 'Overview')}</ul>${groups.join('')}`;
}

/** The way to the pages before and after. */
function turnOf(site: Site, page: Page): string {
  const at = site.pages.indexOf(page);
  const link = (other: Page | undefined, rel: 'prev' | 'next', word: string) =>
    other ? `<a rel="${rel}" href="${other.address}"><span>${word}</span>${escape(other.label)}</a>` : '';
  const links = link(site.pages[at - 1], 'prev', 'Previous') + link(site.pages[at + 1], 'next', 'Next');
  return links && `<nav class="turn" aria-label="Previous and next page">${links}</nav>`;
}

function contentsOf(page: Page): string {
  const listed = page.headings.filter(({ depth }) => LISTED_DEPTHS.includes(depth));
  const items = listed.map(
    ({ id, text, depth }) => `<li class="depth-${depth}"><a href="#${escape(id)}">${escape(text)}</a></li>`,
  );
  return items.length > 1 ? `<h2>On this page</h2><ul>${items.join('')}</ul>` : '';
}

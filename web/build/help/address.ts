import { posix } from 'node:path';

/** Where a link of a document leads. Files are named from the root of the repository: `docs/guides/agents.md`. */
export type Target =
  | { kind: 'page'; file: string; anchor: string }
  /** What the service itself serves under this address. */
  | { kind: 'served'; address: string }
  | { kind: 'web'; address: string }
  /** A file of the repository that is no page of the help. */
  | { kind: 'source'; file: string };

export const INDEX = 'docs/README.md';

/** Files of the repository that every service serves. */
const SERVED: Record<string, string> = {
  'openapi.json': '/openapi.json',
  'packaging/install.sh': '/install.sh',
};

export function targetOf(from: string, href: string): Target {
  if (/^[a-z][a-z0-9+.-]*:/i.test(href)) return { kind: 'web', address: href };
  const [path = '', anchor = ''] = href.split('#', 2);
  const file = path ? posix.join(posix.dirname(from), decodeURIComponent(path)) : from;
  const served = SERVED[file];
  if (served) return { kind: 'served', address: served };
  if (isPage(file)) return { kind: 'page', file, anchor: decodeURIComponent(anchor) };
  return { kind: 'source', file };
}

/** Whether a file is one of the documents that the help shows. Decisions are for those who work on the code. */
export function isPage(file: string): boolean {
  return file.startsWith('docs/') && file.endsWith('.md') && !file.startsWith('docs/decisions/');
}

/** The address of a document: `/help/guides/agents`. */
export function addressOf(file: string): string {
  return file === INDEX ? '/help' : file.replace(/^docs\//, '/help/').replace(/\.md$/, '');
}

/** The id that GitHub gives a heading. */
export function slugOf(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Plugin } from 'vite';
import { pageOf, unknownPage } from './frame.ts';
import { indexOf } from './index.ts';
import { readDocuments, siteOf, type Site } from './site.ts';

const TEMPLATE = 'help/page.html';
/** Not below `help/`, so that it has no address of its own. */
const UNKNOWN_FILE = 'help-unknown.html';
const DEV_INDEX = '/help-index.json';

/**
 * Makes a page of each document of `docs/`, to be served under `/help`, and the index of their search. A broken link between
 * them ends the build.
 */
export function help(): Plugin {
  let root = '';
  const repository = () => join(root, '..');
  return {
    name: 'help',
    config: () => ({
      build: { rolldownOptions: { input: { index: 'index.html', help: TEMPLATE } } },
      // Images of the documents, while they are written.
      server: { fs: { allow: ['.', '../docs'] } },
    }),
    configResolved(config) {
      root = config.root;
    },
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const template = bundle[TEMPLATE];
        if (template?.type !== 'asset') return this.error(`${TEMPLATE} was not built`);
        delete bundle[TEMPLATE];
        const emit = (name: string, source: string | Uint8Array) =>
          `/${this.getFileName(this.emitFile({ type: 'asset', name, source }))}`;
        const image = (file: string) => emit(basename(file), readFileSync(join(repository(), file)));
        const site = siteOf(readDocuments(repository()), image);
        if (site.faults.length > 0) this.error(site.faults.join('\n'));
        const search = emit('help-index.json', JSON.stringify(indexOf(site)));
        for (const [fileName, source] of filesOf(String(template.source), site, search))
          this.emitFile({ type: 'asset', fileName, source });
      },
    },
    configureServer({ middlewares, watcher, ws, transformIndexHtml }) {
      const docs = join(repository(), 'docs');
      watcher.add(docs);
      watcher.on('change', (path) => path.startsWith(docs) && ws.send({ type: 'full-reload' }));
      middlewares.use((request, response, next) => {
        const path = (request.url ?? '').replace(/[?#].*/, '');
        if (path !== DEV_INDEX && path !== '/help' && !/^\/help\/(?!.*\.\w+$)/.test(path)) return next();
        const site = siteOf(readDocuments(repository()), (file) => `/@fs${join(repository(), file)}`);
        if (path === DEV_INDEX) return response.end(JSON.stringify(indexOf(site)));
        const files = new Map(filesOf(readFileSync(join(root, TEMPLATE), 'utf8'), site, DEV_INDEX));
        const page = files.get(`${path.slice(1)}.html`) ?? files.get(UNKNOWN_FILE) ?? '';
        response.setHeader('Content-Type', 'text/html; charset=utf-8');
        transformIndexHtml(`/${TEMPLATE}`, page).then((html) => response.end(html), next);
      });
    },
  };
}

/** Each file with what is in it. */
function filesOf(template: string, site: Site, search: string): [name: string, html: string][] {
  const pages = site.pages.map((page): [string, string] => [
    `${page.address.slice(1)}.html`,
    pageOf(template, site, page, search),
  ]);
  return [...pages, [UNKNOWN_FILE, unknownPage(template, site, search)]];
}

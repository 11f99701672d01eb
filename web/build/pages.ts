import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

/** The script that runs before anything is painted. In the build it is a part of `boot`. */
const THEME = '<script src="/theme.js"></script>';
const BOOT = 'src/boot/boot.ts';
const PAGES = 'src/pages/pages.ts';
const TABS = 'src/pages/server/tabs.ts';
/** The page whose tabs have addresses and files of their own. */
const TABBED = '/servers/:id/:tab?';
/** What a page shows of many things, which comes with the page: a file that is found late costs a slow line a round trip. */
const OFTEN: Record<string, string[]> = { 'fleet/Fleet.svelte': ['src/pages/fleet/Table.svelte'] };
/** Where the service finds the page of an address: `page_at` in src/http/web.rs. */
const DIRECTORY = 'pages';

/** What a page shows until its program is here. */
type Outline = 'cards' | 'charts' | 'rows' | 'none';

/** A page as the service sends it. */
export interface Served {
  /** Its file below `pages/`: that of its address, with `_` in the place of what varies. */
  file: string;
  /** The components that it begins with. */
  components: string[];
  outline: Outline;
}

/** A part of the bundle, as far as it matters here. */
export interface Part {
  fileName: string;
  imports: string[];
  styles: string[];
}

/**
 * Writes the page of each address with links to all files that the address needs, so that a browser asks for them at once and
 * not one after the other; and the boot script, which asks for the first answers of the service.
 */
export function pages(): Plugin {
  let root = '';
  return {
    name: 'pages',
    apply: 'build',
    config: () => ({ build: { rolldownOptions: { input: { boot: BOOT } } } }),
    configResolved(config) {
      root = config.root;
    },
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const index = bundle['index.html'];
        if (index?.type !== 'asset') return this.error('index.html was not built');
        const chunks = Object.values(bundle).filter((each) => each.type === 'chunk');
        const parts = new Map(
          chunks.map(({ fileName, imports, viteMetadata }): [string, Part] => [
            fileName,
            { fileName, imports, styles: [...(viteMetadata?.importedCss ?? [])] },
          ]),
        );
        const partWith = (module: string) => chunks.find(({ moduleIds }) => moduleIds.includes(join(root, module)));

        const boot = partWith(BOOT);
        if (!boot || boot.imports.length > 0 || boot.dynamicImports.length > 0)
          return this.error(`${BOOT} must be one file: it is no module`);
        const translations: Record<string, string> = {};
        for (const { fileName, moduleIds } of chunks) {
          const language = moduleIds.map((id) => /\/messages\/([a-z-]+)\/app\.ts$/.exec(id)?.[1]).find(Boolean);
          if (language) translations[language] = `/${fileName}`;
        }
        const code = `const TRANSLATIONS = ${JSON.stringify(translations)};\n${boot.code.replace(/export\s*\{\s*\};?/, '')}`;
        const source = `${readFileSync(join(root, 'public/theme.js'), 'utf8')}(() => {\n${code}\n})();\n`;
        const hash = createHash('sha256').update(source).digest('base64url').slice(0, 8);
        delete bundle[boot.fileName];
        this.emitFile({ type: 'asset', fileName: `assets/boot-${hash}.js`, source });

        const page = withBoot(String(index.source), `/assets/boot-${hash}.js`);
        index.source = page;
        const read = (file: string) => readFileSync(join(root, file), 'utf8');
        for (const { file, components, outline } of served(read(PAGES), read(TABS))) {
          const needed = components.map((component) => {
            const part = partWith(component);
            return part ? part.fileName : this.error(`${component} is in no file`);
          });
          const links = linksOf(needed, parts, page);
          this.emitFile({ type: 'asset', fileName: `${DIRECTORY}/${file}`, source: withLinks(page, links, outline) });
        }
      },
    },
  };
}

/** Every page with what it begins with, from the lists of the router and of the tabs of a server. */
export function served(pagesSource: string, tabsSource: string): Served[] {
  const outlines: Record<string, Outline> = {
    '/': 'cards',
    '/servers': 'cards',
    [TABBED]: 'charts',
    '/wall': 'none',
    '/sign-in': 'none',
    '/register': 'none',
  };
  const found = [...pagesSource.matchAll(/pattern: '([^']+)'[^]*?import\('\.\/([^']+)'\)/g)];
  const tabs = [...tabsSource.matchAll(/name: '(\w*)'[^]*?import\('\.\/([^']+)'\)/g)];
  return found.flatMap(([, pattern = '', file = '']): Served[] => {
    const components = [`src/pages/${file}`, ...(OFTEN[file] ?? [])];
    const outline = outlines[pattern] ?? 'rows';
    if (pattern === TABBED)
      return tabs.map(([, tab, own]) => ({
        file: tab ? `servers/_/${tab}.html` : 'servers/_.html',
        components: [...components, `src/pages/server/${own}`],
        outline: tab ? 'rows' : outline,
      }));
    const whole = pattern === '/' ? 'index' : pattern.slice(1).replace(/:\w+\??/g, '_');
    const shorter = /\/:\w+\?$/.test(pattern) ? [whole.replace(/\/_$/, '')] : [];
    return [whole, ...shorter].map((name) => ({ file: `${name}.html`, components, outline }));
  });
}

/** The links to the files of some parts and of all that those import; but for what the page links already. */
export function linksOf(needed: string[], parts: Map<string, Part>, page: string): string[] {
  const reached = new Set<string>();
  const reach = (fileName: string) => {
    if (reached.has(fileName)) return;
    reached.add(fileName);
    parts.get(fileName)?.imports.forEach(reach);
  };
  needed.forEach(reach);
  const styles = new Set([...reached].flatMap((fileName) => parts.get(fileName)?.styles ?? []));
  return [
    ...[...styles].map((style) => `<link rel="stylesheet" crossorigin href="/${style}">`),
    ...[...reached].map((script) => `<link rel="modulepreload" crossorigin href="/${script}">`),
  ].filter((link) => !page.includes(`"${/href="([^"]+)"/.exec(link)?.[1]}"`));
}

/** The page with the boot script, and with its styles behind the outline, which is painted without waiting for them. */
export function withBoot(page: string, boot: string): string {
  if (!page.includes(THEME)) throw new Error(`index.html does not have ${THEME}`);
  const style = /[ \t]*<link rel="stylesheet"[^>]*>\n?/g;
  const styles = [...page.matchAll(style)].map(([link]) => link.trim());
  return page
    .replace(style, '')
    .replace(THEME, `<script src="${boot}"></script>`)
    .replace('<div id="app">', `${styles.join('\n    ')}\n    <div id="app">`);
}

/** The page with links to more files, and with the outline of what comes. */
export function withLinks(page: string, links: string[], outline: Outline): string {
  const [styles, scripts] = [true, false].map((isStyle) =>
    links.filter((link) => link.includes('rel="stylesheet"') === isStyle).map((link) => `${link}\n    `),
  );
  return page
    .replace('<div id="app">', `${styles?.join('')}<div id="app">`)
    .replace('</head>', `${scripts?.map((link) => link.trim()).join('\n    ')}\n  </head>`)
    .replace('data-outline="none"', `data-outline="${outline}"`);
}

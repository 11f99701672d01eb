// @vitest-environment node
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { linksOf, served, withBoot, withLinks, type Part } from './pages.ts';

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const all = served(read('src/pages/pages.ts'), read('src/pages/server/tabs.ts'));
const of = (file: string) => all.find((each) => each.file === file);

test('each address has a page that names the components it begins with', () => {
  expect(of('index.html')?.components).toEqual(['src/pages/fleet/Fleet.svelte', 'src/pages/fleet/Table.svelte']);
  expect(of('servers/_.html')?.components).toEqual([
    'src/pages/server/Server.svelte',
    'src/pages/server/overview/Overview.svelte',
  ]);
  expect(of('servers/_/logs.html')?.components.at(-1)).toBe('src/pages/server/logs/Logs.svelte');
  expect(of('servers/new.html')?.components).toEqual(['src/pages/add-server/AddServer.svelte']);
  expect(of('alerts.html')).toEqual({ ...of('alerts/_.html'), file: 'alerts.html' });
  expect(new Set(all.map(({ file }) => file)).size).toBe(all.length);
});

const part = (fileName: string, imports: string[] = [], styles: string[] = []): [string, Part] => [
  fileName,
  { fileName, imports, styles },
];

test('a page links everything that its components import, once, and nothing that it has', () => {
  const parts = new Map([
    part('a.js', ['base.js', 'b.js'], ['a.css']),
    part('b.js', ['c.js', 'a.js']),
    part('c.js', [], ['c.css', 'a.css']),
    part('base.js'),
    part('other.js', [], ['other.css']),
  ]);
  const page = '<link rel="modulepreload" crossorigin href="/base.js">';

  expect(linksOf(['a.js', 'b.js'], parts, page)).toEqual([
    '<link rel="stylesheet" crossorigin href="/a.css">',
    '<link rel="stylesheet" crossorigin href="/c.css">',
    '<link rel="modulepreload" crossorigin href="/a.js">',
    '<link rel="modulepreload" crossorigin href="/b.js">',
    '<link rel="modulepreload" crossorigin href="/c.js">',
  ]);
});

test('styles stand behind the outline, which is painted without them; scripts are asked for first', () => {
  const built = `<head>
    <script src="/theme.js"></script>
    <link rel="stylesheet" crossorigin href="/index.css">
  </head><body><div id="outline" data-outline="none"></div><div id="app"></div></body>`;
  const links = ['<link rel="stylesheet" href="/a.css">', '<link rel="modulepreload" href="/a.js">'];

  const page = withLinks(withBoot(built, '/assets/boot-1.js'), links, 'cards');

  const order = ['src="/assets/boot-1.js"', '"/a.js"', '</head>', 'data-outline="cards"', '"/index.css"', '"/a.css"'];
  const places = [...order, '<div id="app">'].map((text) => page.indexOf(text));
  expect(places).not.toContain(-1);
  expect([...places].sort((a, b) => a - b)).toEqual(places);
  expect(page).not.toContain('theme.js');
});

test('a page without the script that is replaced ends the build', () => {
  expect(() => withBoot('<head></head>', '/assets/boot-1.js')).toThrow('theme.js');
});

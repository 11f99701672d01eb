import { expect, test } from 'vitest';
import { addressOf, slugOf, targetOf } from './address';
import { blocksOf, render } from './document';

const FILE = 'docs/guides/agents.md';
const of = (markdown: string) => render(blocksOf(FILE, markdown), (file) => `/assets/${file}`);

test('headings have the ids that GitHub gives them', () => {
  expect(slugOf("The client's address")).toBe('the-clients-address');
  expect(slugOf('421 `host_not_allowed`'.replaceAll('`', ''))).toBe('421-host_not_allowed');
  expect(slugOf('`/readyz` answers 503'.replaceAll('`', ''))).toBe('readyz-answers-503');
  expect(slugOf('3. Create the first account')).toBe('3-create-the-first-account');
  expect(slugOf('Größe & Zahl')).toBe('größe--zahl');
});

test('headings that are alike are counted', () => {
  const { headings } = of('# A\n\n## SQLite\n\n## B\n\n### SQLite\n\n### SQLite\n');

  expect(headings.map(({ id }) => id)).toEqual(['a', 'sqlite', 'b', 'sqlite-1', 'sqlite-2']);
});

test('a heading has a link to itself beside it', () => {
  const { html } = of('## The `policy`\n');

  expect(html).toBe(
    '<div class="heading"><h2 id="the-policy">The <code>policy</code></h2>' +
      '<a class="anchor" href="#the-policy" aria-label="Link to “The policy”">#</a></div>\n',
  );
});

test('a link leads to a page, to what the service serves, to the web, or nowhere', () => {
  const at = (href: string) => targetOf(FILE, href);

  expect(at('alerts.md#channels')).toEqual({ kind: 'page', file: 'docs/guides/alerts.md', anchor: 'channels' });
  expect(at('#the-policy')).toEqual({ kind: 'page', file: FILE, anchor: 'the-policy' });
  expect(at('../operate/proxy.md')).toEqual({ kind: 'page', file: 'docs/operate/proxy.md', anchor: '' });
  expect(at('../../openapi.json')).toEqual({ kind: 'served', address: '/openapi.json' });
  expect(at('https://nats.io')).toEqual({ kind: 'web', address: 'https://nats.io' });
  expect(at('../decisions/README.md')).toEqual({ kind: 'source', file: 'docs/decisions/README.md' });
  expect(at('../../Dockerfile')).toEqual({ kind: 'source', file: 'Dockerfile' });
});

test('links between documents become links between pages', () => {
  const { html } = of('[a](alerts.md#channels) [b](../README.md) [c](#x) [d](../../openapi.json)');

  expect(html).toContain('<a href="/help/guides/alerts#channels">a</a>');
  expect(html).toContain('<a href="/help">b</a>');
  expect(html).toContain('<a href="/help/guides/agents#x">c</a>');
  expect(html).toContain('<a href="/openapi.json">d</a>');
  expect(addressOf('docs/series.md')).toBe('/help/series');
});

test('a link to a file of the source is text that names the file', () => {
  const { html } = of('[the image](../../Dockerfile), [packaging/compose](../../packaging/compose)');

  expect(html).toBe('<p>the image (<code>Dockerfile</code> in the source), packaging/compose</p>\n');
});

test('HTML in a document is shown, not used', () => {
  const { html } = of('<script>alert(1)</script>\n\na <b onclick="x">b</b> [c](javascript:alert(1))\n');

  expect(html).not.toMatch(/<(script|b)\b/);
  expect(html).not.toContain('href');
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
});

test('code is shown as it stands, diagrams too', () => {
  const { html } = of('```mermaid\nA --> B & "C"\n```\n');

  expect(html).toBe(
    '<div class="code"><pre data-language="mermaid"><code>A --&gt; B &amp; &quot;C&quot;\n</code></pre></div>\n',
  );
});

test('tables have a box in which they scroll', () => {
  expect(of('| a | b |\n|---|---|\n| 1 | 2 |\n').html).toMatch(/^<div class="table-box"[^>]*><table>[^]*<\/table>/);
});

test('images are served by the service', () => {
  const { html, images } = of('![the fleet](../images/fleet.webp)\n\n![elsewhere](https://example.com/a.png)');

  expect(images).toEqual(['docs/images/fleet.webp']);
  expect(html).toContain('<img src="/assets/docs/images/fleet.webp" alt="the fleet" loading="lazy" />');
  expect(html).not.toContain('example.com');
});

test('the search gets the text of each section', () => {
  const { sections, title } = of(
    '# Agents\n\nFirst.\n\n## Install\n\n- one `--key`\n- [two](alerts.md)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\ncurl  x\n```\n',
  );

  expect(title).toBe('Agents');
  expect(sections).toEqual([
    { id: '', heading: '', text: 'First.' },
    { id: 'install', heading: 'Install', text: 'one --key two a · b — 1 · 2 curl x' },
  ]);
});

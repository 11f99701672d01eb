// @ts-check
// Finds texts for people that stand in the sources and not in the catalogue, and messages that are read too early.
import { parse } from 'svelte/compiler';
import ts from 'typescript';

/** Attributes and properties that people read or hear. */
const SPOKEN =
  /^(aria-(label|description|roledescription|valuetext|placeholder)|title|placeholder|alt|label|text|hint|message|what|empty|any|error|data-label)$/;

/** Names that are the same in every language, and examples of what is typed. */
const NAMES = new Set(
  [
    'Signalbox',
    'CPU',
    'API',
    // Keys, and what the browser calls them.
    ...'Escape Enter Backspace Delete Tab Home End ArrowUp ArrowDown ArrowLeft ArrowRight PageUp PageDown Esc Ctrl'.split(
      ' ',
    ),
    // Headers, errors, types.
    ...'Authorization Bearer Content-Type Accept AbortError Failure'.split(' '),
    // Products.
    ...[
      'Edge',
      'Opera',
      'Samsung Internet',
      'Vivaldi',
      'Firefox',
      'Chrome',
      'Safari',
      'Android',
      'ChromeOS',
      'Windows',
    ],
    ...['FreeBSD', 'Linux', 'Wget', 'Python requests', 'Python httpx', 'Python urllib', 'Postman', 'PowerShell'],
    ...['Slack', 'Discord', 'Microsoft Teams', 'Telegram', 'Gotify'],
    // What is typed.
    'web-1',
    'uptime',
    'apt-get -s upgrade | tail -1',
    '/usr/local/bin/backup',
    '/var/log/nginx/access.log',
    'Ki Mi Gi Ti Pi'.split(' '),
  ].flat(),
);

/** Lines of a shell, and lengths. */
const COMMAND = /^(--[\w\u0000]|curl |signalbox-agent |\d+px |\u0000px$|https?:\/\/|[\w.]+@[\w.]+$|\d+:)/;

/** Elements in which programs are quoted. */
const QUOTED = new Set(['code', 'kbd', 'pre']);

/** Calls whose texts nobody is shown. */
const UNSEEN =
  /^(new )?(console\.\w+|Error|TypeError|matchMedia|document\.querySelector|[\w.]+\.(closest|matches|querySelector|querySelectorAll))$/;

/**
 * @typedef {{ line: number, text: string }} Finding
 * @typedef {{ start: number, text: string }} Place
 */

/** Texts of a source file that are not in the catalogue. @param {string} path @param {string} source @returns {Finding[]} */
export function textsOutside(path, source) {
  /** @type {Place[]} */
  const places = [];
  if (path.endsWith('.svelte')) {
    const root = parse(source, { modern: true });
    for (const script of [root.instance, root.module]) if (script) fromCode(source, script.content, places);
    fromMarkup(source, root.fragment, places);
  } else {
    fromCode(source, { start: 0, end: source.length }, places);
  }
  return places.map(({ start, text }) => ({ line: source.slice(0, start).split('\n').length, text }));
}

/** Messages of the catalogue that a module reads while it is loaded, which is before they are there. @param {string} source */
export function readTooEarly(source) {
  /** @type {Finding[]} */
  const found = [];
  const file = ts.createSourceFile('file.ts', source, ts.ScriptTarget.Latest, true);
  const names = new Set(Object.keys(areasOf(source)));
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isFunctionLike(node) || (ts.isPropertyDeclaration(node) && !isStatic(node))) return;
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const [left] = node.expression.getText().split('.');
      if (left && names.has(left)) found.push({ line: lineOf(file, node), text: node.getText() });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The areas of the catalogue that a file imports, by the name it gives them. @param {string} source @returns {Record<string, string>} */
export function areasOf(source) {
  const imports = source.matchAll(/^\s*import \* as (\w+) from '#messages\/(\w+)';/gm);
  return Object.fromEntries([...imports].map(([, name, area]) => [name ?? '', area ?? '']));
}

/** @param {ts.PropertyDeclaration} node */
function isStatic(node) {
  return node.modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.StaticKeyword) ?? false;
}

/** @param {ts.SourceFile} file @param {ts.Node} node */
function lineOf(file, node) {
  return file.getLineAndCharacterOfPosition(node.getStart()).line + 1;
}

/** @param {string} source @param {unknown} part @param {Place[]} places */
function fromCode(source, part, places) {
  const { start, end } = /** @type {{ start: number, end: number }} */ (part);
  const file = ts.createSourceFile('file.ts', source.slice(start, end), ts.ScriptTarget.Latest, true);
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    if ((ts.isCallExpression(node) || ts.isNewExpression(node)) && isUnseen(node)) return;
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      if (readsLikeText(node.text, isSpoken(node))) places.push({ start: start + node.getStart(), text: node.text });
    } else if (ts.isTemplateExpression(node)) {
      const parts = [node.head.text, ...node.templateSpans.map((span) => span.literal.text)];
      if (partsReadLikeText(parts)) places.push({ start: start + node.getStart(), text: node.getText() });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
}

/** @param {ts.CallExpression | ts.NewExpression} node */
function isUnseen(node) {
  return UNSEEN.test(node.expression.getText());
}

/** Whether it is the value of a property that people read: `{ label: 'on' }`. @param {ts.Node} node */
function isSpoken(node) {
  return (
    ts.isPropertyAssignment(node.parent) && node.parent.initializer === node && SPOKEN.test(node.parent.name.getText())
  );
}

/** @param {string} source @param {unknown} node @param {Place[]} places */
function fromMarkup(source, node, places) {
  if (Array.isArray(node)) {
    for (const each of node) fromMarkup(source, each, places);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const { type, start, ...rest } = /** @type {{ type?: string, start: number, [name: string]: unknown }} */ (node);
  const given = /** @type {{ name: string, value: unknown, data: string, quasis: { value: { raw: string } }[] }} */ (
    /** @type {unknown} */ (rest)
  );
  if (type === 'Text') {
    const text = given.data.trim();
    if (/\p{L}/u.test(text) && !NAMES.has(text)) places.push({ start, text });
    return;
  }
  if (type === 'Attribute' && Array.isArray(given.value)) {
    if (SPOKEN.test(given.name)) fromMarkup(source, given.value, places);
    else for (const part of given.value) if (part.type !== 'Text') fromMarkup(source, part, places);
    return;
  }
  if (type === 'StyleDirective' || type === 'ClassDirective') return;
  if (type === 'RegularElement' && QUOTED.has(given.name)) {
    const { fragment } = /** @type {{ fragment: { nodes: { type: string }[] } }} */ (/** @type {unknown} */ (rest));
    fragment.nodes = fragment.nodes.filter((held) => held.type !== 'Text');
  }
  if (type === 'Literal' && typeof given.value === 'string') {
    if (readsLikeText(given.value, false)) places.push({ start, text: given.value });
  } else if (type === 'TemplateLiteral') {
    const parts = given.quasis.map((quasi) => quasi.value.raw);
    if (partsReadLikeText(parts)) places.push({ start, text: parts.join('…') });
  }
  for (const [name, held] of Object.entries(rest))
    if (name !== 'loc' && name !== 'metadata') fromMarkup(source, held, places);
}

/** @param {string} text @param {boolean} isForPeople */
function readsLikeText(text, isForPeople) {
  if (NAMES.has(text.trim()) || COMMAND.test(text)) return false;
  if (isForPeople) return /\p{L}/u.test(text);
  return /\p{L}{2,}[,.:;!?…]? +\p{L}/u.test(text) || /^\p{Lu}\p{Ll}+[.:!?…]*$/u.test(text);
}

/** The fixed parts of a template: words with blanks about them are text, the parts of an address or a name are not. @param {string[]} parts */
function partsReadLikeText(parts) {
  const text = parts.join('\u0000');
  if (NAMES.has(text.replaceAll('\u0000', '').trim()) || COMMAND.test(text)) return false;
  return /(^|[\s\u0000])\p{L}{2,}[,.:;!?…]?(\s|$)/u.test(text) || /\s\p{L}{2,}[,.:;!?…]?(\s|\u0000|$)/u.test(text);
}

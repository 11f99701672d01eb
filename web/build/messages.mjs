// @ts-check
// Compiles the interface's texts. `messages/LANGUAGE/AREA.json` holds messages in ICU's syntax, English the complete ones.
// Each area becomes a module with a typed function a message, so that a page brings the texts that it shows and no others.
// English stands in it; every other language of an area is a module of its own, which only its readers load.
//
// A message may hold `{name}`, `{count, number}`, `{count, plural, one {# server} other {# servers}}`,
// `{kind, select, a {...} other {...}}`, and tags (`<code>...</code>`) of which the component says how they look.
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TYPE, parse } from '@formatjs/icu-messageformat-parser';

/** The language that every message has. */
export const BASE = 'en';

/** Words that no function can have as its name. */
const RESERVED = new Set(
  'break case catch class const continue debugger default delete do else enum export extends false finally for function if import in instanceof new null return super switch this throw true try typeof var void while with yield let static await async of t n p area rule'.split(
    ' ',
  ),
);

/**
 * @typedef {import('@formatjs/icu-messageformat-parser').MessageFormatElement} Element
 * @typedef {Record<string, string>} Area messages by their key
 * @typedef {Record<string, Record<string, Area>>} Catalogue areas by language and name
 * @typedef {{ values: Map<string, string>, tags: Set<string> }} Shape what a message is given, with its type, and its tags
 * @typedef {{ text: string } | { code: string } | { tag: string, held: Piece[] }} Piece
 * @typedef {{ values: Map<string, string>, tags: Set<string>, helpers: Set<string> }} Context
 */

/** @param {string} text */
function elements(text) {
  return parse(text, { requiresOtherClause: true, shouldParseSkeletons: false, captureLocation: false });
}

/** What a message is given. @param {string} text @returns {Shape} */
export function shape(text) {
  const context = contextOf();
  pieces(elements(text), context, null);
  return { values: context.values, tags: context.tags };
}

/** @returns {Context} */
function contextOf() {
  return { values: new Map(), tags: new Set(), helpers: new Set() };
}

/** What cannot be compiled, or is not the same in all languages; nothing where the catalogue is whole. @param {Catalogue} catalogue */
export function faults(catalogue) {
  /** @type {string[]} */
  const found = [];
  const base = catalogue[BASE] ?? {};
  for (const [language, areas] of Object.entries(catalogue)) {
    for (const name of new Set([...Object.keys(base), ...Object.keys(areas)])) {
      for (const key of new Set([...Object.keys(base[name] ?? {}), ...Object.keys(areas[name] ?? {})])) {
        const fault = faultOf(key, base[name]?.[key], areas[name]?.[key], language);
        if (fault) found.push(`messages/${language}/${name}.json: ${key}: ${fault}`);
      }
    }
  }
  return found;
}

/** @param {string} key @param {string | undefined} base @param {string | undefined} text @param {string} language */
function faultOf(key, base, text, language) {
  if (base === undefined) return `${BASE} has no such message`;
  if (text === undefined) return 'is missing';
  if (!/^[a-z][A-Za-z0-9]*$/.test(key) || RESERVED.has(key)) return 'cannot be the name of a function';
  try {
    const [wanted, given] = [described(base), described(text)];
    if (language !== BASE && wanted !== given)
      return `takes ${given || 'nothing'}, and ${wanted || 'nothing'} in ${BASE}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return null;
}

/** @param {string} text */
function described(text) {
  const { values, tags } = shape(text);
  const named = [...values].map(([name, type]) => `${name}: ${type}`);
  return [...named, ...[...tags].map((tag) => `<${tag}>`)].sort().join(', ');
}

/**
 * The pieces of a message. `pound` is the code of the number that `#` stands for.
 * @param {Element[]} given @param {Context} context @param {string | null} pound @returns {Piece[]}
 */
function pieces(given, context, pound) {
  return given.map((element) => {
    switch (element.type) {
      case TYPE.literal:
        return { text: element.value };
      case TYPE.pound:
        if (pound === null) throw new Error('# stands outside of a plural');
        context.helpers.add('n');
        return { code: `n(${pound})` };
      case TYPE.argument:
        return { code: value(element.value, 'string', context) };
      case TYPE.number:
        if (element.style) throw new Error(`{${element.value}} has a style: formatters are in src/text`);
        context.helpers.add('n');
        return { code: `n(${value(element.value, 'number', context)})` };
      case TYPE.plural: {
        if (element.pluralType !== 'cardinal' || element.offset) throw new Error('only plain plurals are known');
        const number = value(element.value, 'number', context);
        return {
          code: choice(element.options, context, number, (option) => {
            if (option.startsWith('=')) return `${number} === ${Number(option.slice(1))}`;
            context.helpers.add('p');
            return `p(${number}) === '${option}'`;
          }),
        };
      }
      case TYPE.select: {
        const names = Object.keys(element.options).filter((name) => name !== 'other');
        const type = [...names.map((name) => `'${name}'`).sort(), 'other' in element.options ? "'other'" : ''].join(
          ' | ',
        );
        const chosen = value(element.value, type, context);
        return { code: choice(element.options, context, pound, (option) => `${chosen} === '${option}'`) };
      }
      case TYPE.tag:
        context.tags.add(element.value);
        return { tag: element.value, held: pieces(element.children, context, pound) };
      default:
        throw new Error('dates and times are formatted in src/text');
    }
  });
}

/** @param {string} name @param {string} type @param {Context} context */
function value(name, type, context) {
  if (!/^[a-z][A-Za-z0-9]*$/.test(name)) throw new Error(`{${name}} cannot be the name of a value`);
  const known = context.values.get(name);
  if (known !== undefined && known !== type) throw new Error(`{${name}} is ${known} and ${type}`);
  context.values.set(name, type);
  return `v.${name}`;
}

/**
 * The first option that fits; `other` where none does.
 * @param {Record<string, { value: Element[] }>} options @param {Context} context @param {string | null} pound
 * @param {(option: string) => string} test
 */
function choice(options, context, pound, test) {
  /** @param {Element[]} held */
  const write = (held) => {
    const written = pieces(held, context, pound);
    if (written.some((piece) => 'tag' in piece))
      throw new Error('a tag stands within a choice: put the choice into the tag');
    return template(written);
  };
  let code = '';
  for (const [name, option] of Object.entries(options))
    if (name !== 'other') code += `${test(name)} ? ${write(option.value)} : `;
  const other = options['other'];
  if (!other) throw new Error('a choice has no other');
  return `(${code}${write(other.value)})`;
}

/** @param {Piece[]} given */
function template(given) {
  const code = given.map((piece) => {
    if ('text' in piece) return piece.text.replace(/[\\`]|\$(?=\{)/g, '\\$&');
    return 'code' in piece ? `\${${piece.code}}` : '';
  });
  return `\`${code.join('')}\``;
}

/** The body of a message: a template, or where it has tags a list. @param {string} text */
function body(text) {
  const context = contextOf();
  const all = pieces(elements(text), context, null);
  if (context.tags.size === 0) return { context, code: template(all) };
  /** @type {string[]} */
  const parts = [];
  /** @type {Piece[]} */
  let plain = [];
  const flush = () => {
    if (plain.length > 0) parts.push(template(plain));
    plain = [];
  };
  for (const piece of all) {
    if (!('tag' in piece)) {
      plain.push(piece);
      continue;
    }
    if (piece.held.some((held) => 'tag' in held)) throw new Error('a tag stands within a tag');
    flush();
    parts.push(`['${piece.tag}', ${template(piece.held)}]`);
  }
  flush();
  return { context, code: `[${parts.join(', ')}]` };
}

/** @param {Context} context */
function valuesType({ values }) {
  return `{ ${[...values].map(([name, type]) => `${name}: ${type}`).join('; ')} }`;
}

/** @param {Context} context */
function resultType({ tags }) {
  return tags.size === 0 ? 'string' : `Rich<${[...tags].map((tag) => `'${tag}'`).join(' | ')}>`;
}

const HEAD = '// Written by build/messages.mjs.\n';

/** The module of an area. @param {string} name @param {Area} area @param {string[]} languages */
function baseModule(name, area, languages) {
  /** @type {Set<string>} */
  const helpers = new Set();
  let usesRich = false;
  const messages = Object.entries(area).map(([key, text], index) => {
    const { context, code } = body(text);
    context.helpers.forEach((helper) => helpers.add(helper));
    const type = resultType(context);
    usesRich ||= type !== 'string';
    const [parameter, given] = context.values.size === 0 ? ['', ''] : [`v: ${valuesType(context)}`, ', v'];
    const comment = text.replaceAll('*/', '* /').replaceAll('\n', ' ');
    return `/** ${comment} */\nexport const ${key} = (${parameter}): ${type} => t<${type}>(${index}${given}) ?? ${code};\n`;
  });
  const imports = ['area', helpers.has('n') && 'n', helpers.has('p') && 'rule', usesRich && 'type Rich'].filter(
    Boolean,
  );
  const loads = languages.map((language) => `${language}: () => import('./${language}/${name}.ts')`);
  return `${HEAD}import { ${imports.join(', ')} } from '../../src/text/catalogue.ts';

const t = /* @__PURE__ */ area({ ${loads.join(', ')} });
${helpers.has('p') ? `const p = rule('${BASE}');\n` : ''}
${messages.join('')}`;
}

/** The module of an area in another language. @param {string} language @param {Area} base @param {Area} area */
function translationModule(language, base, area) {
  /** @type {Set<string>} */
  const helpers = new Set();
  const messages = Object.keys(base).map((key) => {
    const { context, code } = body(area[key] ?? '');
    context.helpers.forEach((helper) => helpers.add(helper));
    const isPlain = context.values.size === 0 && context.tags.size === 0;
    if (isPlain) return `  ${code},\n`;
    return `  (${context.values.size === 0 ? '' : `v: ${valuesType(context)}`}): ${resultType(context)} => ${code},\n`;
  });
  const usesRich = messages.some((message) => message.includes('): Rich<'));
  // Handed in: a chunk that this one and the page's have in common would be one more request of the first load.
  const given = helpers.has('p') ? 'n, rule' : helpers.has('n') ? 'n' : '';
  const rules = helpers.has('p') ? `  const p = rule('${language}');\n` : '';
  return `${HEAD}import type { ${usesRich ? 'Rich, ' : ''}Translate } from '../../../src/text/catalogue.ts';

const translate: Translate = (${given}) => {
${rules}  return [
${messages.join('')}  ];
};
export default translate;
`;
}

/** The files that a catalogue is compiled to, by their path. @param {Catalogue} catalogue @returns {Map<string, string>} */
export function compile(catalogue) {
  const found = faults(catalogue);
  if (found.length > 0) throw new Error(`the interface's texts are not whole:\n${found.join('\n')}`);
  const base = catalogue[BASE] ?? {};
  const others = Object.keys(catalogue).filter((language) => language !== BASE);
  /** @type {Map<string, string>} */
  const files = new Map();
  for (const [name, area] of Object.entries(base)) {
    files.set(`${name}.ts`, baseModule(name, area, others));
    for (const language of others)
      files.set(`${language}/${name}.ts`, translationModule(language, area, catalogue[language]?.[name] ?? {}));
  }
  const listed = [BASE, ...others].map((language) => `'${language}'`).join(', ');
  files.set('languages.ts', `${HEAD}export const LANGUAGES = [${listed}] as const;\n`);
  return files;
}

/** The catalogue of a directory. @param {string} directory @returns {Catalogue} */
export function read(directory) {
  /** @type {Catalogue} */
  const catalogue = {};
  for (const language of readdirSync(directory).sort()) {
    const names = readdirSync(join(directory, language)).filter((name) => name.endsWith('.json'));
    catalogue[language] = Object.fromEntries(
      names
        .sort()
        .map((name) => [basename(name, '.json'), JSON.parse(readFileSync(join(directory, language, name), 'utf8'))]),
    );
  }
  return catalogue;
}

const WEB = dirname(dirname(fileURLToPath(import.meta.url)));
export const SOURCE = join(WEB, 'messages');
export const COMPILED = join(WEB, 'generated', 'messages');

/** Compiles the catalogue. A file that is right already is not touched: somebody may be reading it. */
export function write() {
  const files = compile(read(SOURCE));
  for (const [path, code] of files) {
    const file = join(COMPILED, path);
    if (textOf(file) === code) continue;
    mkdirSync(dirname(file), { recursive: true });
    const whole = `${file}.${process.pid}`;
    writeFileSync(whole, code);
    renameSync(whole, file);
  }
  const known = readdirSync(COMPILED, { recursive: true, encoding: 'utf8' });
  for (const path of known) if (path.endsWith('.ts') && !files.has(path)) rmSync(join(COMPILED, path), { force: true });
}

/** @param {string} file */
function textOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** Compiles them again as they change, for `npm run dev`. @returns {import('vite').Plugin} */
export function messages() {
  return {
    name: 'messages',
    apply: 'serve',
    configureServer({ watcher, config }) {
      watcher.add(SOURCE);
      watcher.on('change', (path) => {
        if (!path.startsWith(SOURCE)) return;
        try {
          write();
        } catch (error) {
          config.logger.error(error instanceof Error ? error.message : String(error));
        }
      });
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) write();

// Lines that are JSON or logfmt: their message, and their other fields. Pure, and bounded: nothing that a program can write
// takes long to read or has a depth without end.

export interface Field {
  /** With the way to it: `request.headers.host`. */
  name: string;
  /** As text; JSON where it is deeper than is shown. */
  value: string;
}

export interface Parsed {
  kind: 'json' | 'logfmt';
  /** What it says; empty where no field is known to say it. */
  message: string;
  /** As its program wrote it; null where no field says it. */
  level: string | null;
  /** All other fields, but for the time, which a line has already. Made when they are asked for. */
  fields: () => Field[];
}

/** Lines of the service are shorter. */
const MOST_CHARACTERS = 100_000;
const MOST_FIELDS = 200;
const MOST_DEPTH = 5;
const MOST_VALUE = 10_000;
const MOST_PRETTY_DEPTH = 40;

/** In the order in which they are looked for. */
const MESSAGE_NAMES = [
  'message',
  'msg',
  '@m',
  '@mt',
  'MESSAGE',
  'short_message',
  'textPayload',
  'event',
  'body',
  'log',
  'text',
];
const LEVEL_NAMES = [
  'level',
  'severity',
  'lvl',
  'log.level',
  '@l',
  'levelname',
  'level_name',
  'loglevel',
  'logLevel',
  'log_level',
  'LEVEL',
  'PRIORITY',
];
const TIMES = new Set(['time', 'ts', 't', 'timestamp', '@timestamp', '@t', 'datetime', 'date', 'eventTime']);

/** With a capital letter as well, as .NET writes them. */
const withCapitals = (names: readonly string[]) =>
  names.flatMap((name) => [name, name.slice(0, 1).toUpperCase() + name.slice(1)]);
const MESSAGES = withCapitals(MESSAGE_NAMES);
const LEVELS = withCapitals(LEVEL_NAMES);

/** What a line consists of; null for one that is only text. */
export function parse(plain: string): Parsed | null {
  if (plain.length > MOST_CHARACTERS) return null;
  const text = plain.trim();
  if (text.startsWith('{') && text.endsWith('}')) return ofJson(text);
  return /^[A-Za-z_@][\w.@/-]{0,60}=/.test(text) ? ofLogfmt(text) : null;
}

function ofJson(text: string): Parsed | null {
  const value = json(text);
  if (!isObject(value)) return null;
  return parsed(
    'json',
    (name) => at(value, name),
    () => flat(value),
  );
}

function ofLogfmt(text: string): Parsed | null {
  const pairs = logfmt(text);
  if (!pairs) return null;
  const known = new Map(pairs);
  const fields = () => pairs.map(([name, value]) => ({ name, value: cut(value) }));
  const found = parsed('logfmt', (name) => known.get(name), fields);
  // `a=1` may be anything: a message or a level, or many pairs, make it logfmt.
  return found.message || found.level || pairs.length >= 3 ? found : null;
}

function parsed(kind: Parsed['kind'], value: (name: string) => unknown, all: () => Field[]): Parsed {
  const message = MESSAGES.find((name) => isSaid(value(name)));
  const level = LEVELS.find((name) => isLevel(value(name)));
  return {
    kind,
    message: message === undefined ? '' : String(value(message)),
    level: level === undefined ? null : String(value(level)),
    fields: () =>
      all().filter(
        ({ name }) =>
          name !== message &&
          name !== level &&
          !TIMES.has(name) &&
          !TIMES.has(name.slice(0, 1).toLowerCase() + name.slice(1)),
      ),
  };
}

function isSaid(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isLevel(value: unknown): boolean {
  return (typeof value === 'string' && value !== '' && value.length <= 20) || typeof value === 'number';
}

/** A field by its name, which may have dots (ECS), or by its way. */
function at(value: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(value, name)) return value[name];
  const [first = '', second] = name.split('.');
  const inner = second !== undefined && Object.hasOwn(value, first) ? value[first] : undefined;
  return isObject(inner) && Object.hasOwn(inner, second ?? '') ? inner[second ?? ''] : undefined;
}

/** Where JSON and logfmt say when a line was written: with a zone, or as the time since the epoch. */
const TIME =
  /(?:^|[\s{,])"?(?:@?timestamp|time|ts|@t|datetime)"?\s{0,3}[=:]\s{0,3}"?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)|\d{10}(?:\d{3})?(?:\.\d{1,9})?)["\s,}]/i;

/** When a line of JSON or logfmt was written, in milliseconds, as it says itself; null where it does not. */
export function timeOf(plain: string): number | null {
  const head = plain.slice(0, 2_000);
  if (!/^\s{0,8}(?:\{|[\w@.]{1,40}=)/.test(head)) return null;
  const said = TIME.exec(head)?.[1];
  if (said === undefined) return null;
  const seconds = /^\d{10}(?:\.|$)/.test(said);
  const at = /^\d{10}/.test(said)
    ? Number(said) * (seconds ? 1_000 : 1)
    : Date.parse(said.replace(' ', 'T').replace(',', '.'));
  return Number.isFinite(at) ? Math.floor(at) : null;
}

/** All fields with the way to them, in their order. */
function flat(value: Record<string, unknown>): Field[] {
  const fields: Field[] = [];
  const add = (name: string, given: unknown, depth: number) => {
    if (fields.length >= MOST_FIELDS) return;
    if (isObject(given) && depth < MOST_DEPTH && (depth === 0 || Object.keys(given).length > 0)) {
      for (const [key, inner] of Object.entries(given)) add(name ? `${name}.${key}` : key, inner, depth + 1);
    } else {
      fields.push({ name, value: cut(shown(given)) });
    }
  };
  add('', value, 0);
  return fields;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    // Deeper than can be written.
    return '…';
  }
}

function cut(text: string): string {
  return text.length > MOST_VALUE ? `${text.slice(0, MOST_VALUE)}…` : text;
}

/**
 * The pairs of a line in logfmt: `level=warn msg="took long" took=3s`. Null where the rest of the line is no such pair, so that
 * prose with an equals sign stays prose. Goes through the text once.
 */
function logfmt(text: string): [string, string][] | null {
  const pairs: [string, string][] = [];
  let bare = 0;
  let index = 0;
  while (index < text.length) {
    if (text.charCodeAt(index) <= 32) {
      index += 1;
      continue;
    }
    const start = index;
    while (index < text.length && isKey(text.charCodeAt(index))) index += 1;
    const name = text.slice(start, index);
    if (name === '') return null;
    if (text[index] !== '=') {
      // A key alone is allowed; a sentence of them is none.
      if (index < text.length && text.charCodeAt(index) > 32) return null;
      bare += 1;
      if (bare > 2) return null;
      continue;
    }
    index += 1;
    let value: string;
    if (text[index] === '"') {
      const end = quoteEnd(text, index);
      if (end < 0) return null;
      value = unquoted(text.slice(index, end));
      index = end;
    } else {
      const from = index;
      while (index < text.length && text.charCodeAt(index) > 32) index += 1;
      value = text.slice(from, index);
    }
    if (pairs.length < MOST_FIELDS) pairs.push([name, value]);
  }
  return pairs.length >= 2 && pairs.length > bare ? pairs : null;
}

/** Letters, digits, and `_ . - / @ :`. */
function isKey(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 64 && code <= 90) || (code >= 45 && code <= 58) || code === 95;
}

/** Where a quoted text ends, behind its quote; -1 where it does not. */
function quoteEnd(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    if (text[index] === '\\') index += 1;
    else if (text[index] === '"') return index + 1;
  }
  return -1;
}

function unquoted(text: string): string {
  const value = text.includes('\\') ? json(text) : undefined;
  return typeof value === 'string' ? value : text.slice(1, -1);
}

/** A line of JSON over several lines, to be read; null for what is none, and for what is deeper than anybody reads. */
export function pretty(plain: string): string | null {
  // Each depth indents all that is within: the text would be many times as long.
  if (plain.length > MOST_CHARACTERS || depthOf(plain) > MOST_PRETTY_DEPTH) return null;
  const value = json(plain.trim());
  if (!isObject(value)) return null;
  try {
    return JSON.stringify(value, null, 2);
  } catch {
    return null;
  }
}

function depthOf(text: string): number {
  let [depth, most] = [0, 0];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x5b || code === 0x7b) most = Math.max(most, (depth += 1));
    else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return most;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Characters that turn or hide what is around them: they could make a line read as another one. */
const TURNING = /[\u200b\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** A text in which marks of direction are seen, each as its number. */
export function straight(text: string): string {
  TURNING.lastIndex = 0;
  if (!TURNING.test(text)) return text;
  return text.replace(TURNING, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

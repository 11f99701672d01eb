// How bad a line is, as its program says it: in a field of JSON or logfmt, or in one of the ways that plain lines have.
// Pure. No pattern here repeats within a repetition, and a line is read only as far as such a mark may stand.
import { parse } from './structured';

/** From bad to harmless, as buttons and bars are ordered. */
export const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

export type Level = (typeof LEVELS)[number];

/** What programs call them, in lower case. */
const NAMES: Record<string, Level> = Object.fromEntries(
  (
    [
      ['fatal', ['fatal', 'ftl', 'panic', 'dpanic', 'emerg', 'emergency', 'alert', 'crit', 'critical']],
      ['error', ['error', 'err', 'eror', 'fail', 'failure', 'severe']],
      ['warn', ['warning', 'warn', 'wrn']],
      ['info', ['notice', 'note', 'info', 'information', 'informational', 'inf', 'log', 'system', 'config']],
      ['debug', ['debug', 'dbug', 'dbg', 'verbose', 'fine']],
      ['trace', ['trace', 'trce', 'trc', 'vrb', 'finer', 'finest', 'silly']],
    ] as const
  ).flatMap(([level, names]) => names.map((name) => [name, level])),
);

/** Syslog's eight severities, which journals and GELF have as numbers. */
const SYSLOG: readonly Level[] = ['fatal', 'fatal', 'fatal', 'error', 'warn', 'info', 'info', 'debug'];

const LETTERS: Record<string, Level> = {
  F: 'fatal',
  C: 'fatal',
  E: 'error',
  W: 'warn',
  N: 'info',
  I: 'info',
  D: 'debug',
  T: 'trace',
  V: 'trace',
};

/** A mark of a level stands near the beginning of a line. */
const HEAD_CHARACTERS = 240;

/** The level that a name or a number stands for; null for one that nobody knows. */
export function levelOfName(name: string | number): Level | null {
  if (typeof name === 'number') return levelOfNumber(name);
  const text = name.trim();
  if (/^\d{1,3}$/.test(text)) return levelOfNumber(Number(text));
  const known = own(NAMES, text.toLowerCase());
  if (known) return known;
  return text.length === 1 ? own(LETTERS, text.toUpperCase()) : null;
}

/** Syslog counts from 0 to 7; bunyan and pino in steps of ten, with custom ones between. */
function levelOfNumber(value: number): Level | null {
  if (!Number.isFinite(value) || value < 0 || value > 100) return null;
  if (value < 8) return SYSLOG[Math.floor(value)] ?? null;
  if (value < 20) return 'trace';
  if (value < 30) return 'debug';
  if (value < 40) return 'info';
  if (value < 50) return 'warn';
  return value < 60 ? 'error' : 'fatal';
}

/** The level of a line; null where it does not say one. */
export function levelOf(plain: string): Level | null {
  const parsed = parse(plain);
  if (parsed?.level) return levelOfName(parsed.level);
  // What a message within JSON says counts as well.
  return levelOfText(parsed ? parsed.message : plain);
}

type Rule = (head: string) => Level | null;

const word = (pattern: RegExp): Rule => {
  return (head) => {
    const found = pattern.exec(head);
    return found?.[1] === undefined ? null : levelOfName(found[1]);
  };
};

const BEFORE = '(?:^|[\\s\\[(|:="\'<>])';
const AFTER = '(?=$|[\\s\\])|:,;"\'<>])';
const UPPER =
  'FATAL|PANIC|EMERG|EMERGENCY|ALERT|CRIT|CRITICAL|ERROR|ERR|SEVERE|WARNING|WARN|NOTICE|INFO|DEBUG|VERBOSE|TRACE';

/** The first one that fits decides: from what can mean nothing else to what is only likely. */
const RULES: readonly Rule[] = [
  // Syslog's priority: facility times 8, plus severity.
  (head) => {
    const found = /^<(\d{1,3})>/.exec(head);
    const priority = Number(found?.[1]);
    return found && priority < 192 ? (SYSLOG[priority % 8] ?? null) : null;
  },
  // klog and glog: E1124 03:12:00.123456 1 controller.go:96] ...
  word(/^([IWEF])\d{4} \d\d:\d\d:\d\d/),
  // nginx, Apache (`[core:error]`), MySQL, Serilog, logback: [error], [ERR], [W].
  word(/\[(?:\w{1,24}:|\d\d:\d\d:\d\d )?([A-Za-z]{3,11}|[FEWIDT])\s{0,6}\]/),
  // logfmt within other text, and JSON behind a beginning of its own.
  word(
    /(?:^|[\s,{(])"?(?:level|lvl|loglevel|severity|log\.level|PRIORITY)"?\s{0,3}[=:]\s{0,3}"?([A-Za-z]{3,13}|\d{1,3})\b/,
  ),
  // Redis: 1:M 24 Nov 2026 03:12:00.123 # ...
  (head) => {
    const found = /^\d{1,10}:[MCSX] \d\d \w{3} \d{4} [\d:.]{8,15} ([.\-*#]) /.exec(head);
    return found ? ({ '.': 'debug', '-': 'debug', '*': 'info', '#': 'warn' } as const)[found[1] as '.'] : null;
  },
  // PostgreSQL: 2026-11-24 03:12:00 UTC [77] LOG:  ...
  word(/(?:^|[\s\]])(PANIC|FATAL|ERROR|WARNING|NOTICE|LOG|INFO|DEBUG)\d?: {1,2}/),
  // Java, Python, Rust, Go: the word in capitals.
  word(new RegExp(`${BEFORE}(${UPPER})\\d?${AFTER}`)),
  // Android, zap's and slog's short forms, .NET's console: at the beginning alone.
  word(/^(fatal|panic|critical|crit|error|err|fail|warning|warn|notice|info|debug|dbug|trace|trce)\s?(?::|\[|!)/i),
  word(/^\S{1,40} (?:\S{1,40} )?([FEWIDT])\/[\w.$-]{1,60}[:(]/),
  word(/^npm (ERR|WARN|error|warn|notice)\b/),
  // What a program says before it dies of it.
  (head) => (/^(?:panic|fatal error|thread '[^']{0,60}' panicked)/.test(head) ? 'fatal' : null),
  (head) => (/^(?:Traceback \(most recent call last\)|Exception in thread |Unhandled )/.test(head) ? 'error' : null),
  (head) => (/^[\w.$]{0,120}(?:Exception|Error)(?:$|[:\s])/.test(head) ? 'error' : null),
  // Logs of web servers: the answer's status.
  (head) => {
    const found = /" ([1-5])\d\d (?:\d{1,15}|-)(?:\s|$)/.exec(head);
    return found ? (found[1] === '5' ? 'error' : found[1] === '4' ? 'warn' : 'info') : null;
  },
];

function levelOfText(plain: string): Level | null {
  const head = plain.length > HEAD_CHARACTERS ? plain.slice(0, HEAD_CHARACTERS) : plain;
  for (const rule of RULES) {
    const level = rule(head);
    if (level) return level;
  }
  // The request of a web server's line may be long, and the status stands behind it.
  return plain.length > HEAD_CHARACTERS && /^\S{1,60} \S{1,60} \S{1,60} \[/.test(head) ? levelOfStatus(plain) : null;
}

function levelOfStatus(plain: string): Level | null {
  const found = /" ([1-5])\d\d (?:\d{1,15}|-) "/.exec(plain.slice(0, 4_096));
  return found ? (found[1] === '5' ? 'error' : found[1] === '4' ? 'warn' : 'info') : null;
}

/** What a table itself has under a name that anybody may write into a log. */
function own<T>(table: Record<string, T>, name: string): T | null {
  return Object.hasOwn(table, name) ? (table[name] ?? null) : null;
}

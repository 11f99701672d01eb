// The words that people type for times, in every language that the interface speaks: who reads it in German may type English.

export type Size = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';

const sizes: Record<Size, string> = {
  second: 's sec secs second seconds sek sekunde sekunden',
  minute: 'm min mins minute minutes minuten',
  hour: 'h hr hrs hour hours std stunde stunden',
  day: 'd day days t tag tage tagen',
  week: 'w wk week weeks woche wochen',
  month: 'mo month months monat monate monaten',
  year: 'y yr year years j jahr jahre jahren',
};

/** From Sunday, as calendars of programs have it. */
const weekdays = [
  'sunday sun sonntag so',
  'monday mon montag mo',
  'tuesday tue tues dienstag di',
  'wednesday wed mittwoch mi',
  'thursday thu thur thurs donnerstag do',
  'friday fri freitag fr',
  'saturday sat samstag sa sonnabend',
];

const months = [
  'january jan januar jänner',
  'february feb februar',
  'march mar märz mär mrz maerz',
  'april apr',
  'may mai',
  'june jun juni',
  'july jul juli',
  'august aug',
  'september sep sept',
  'october oct oktober okt',
  'november nov',
  'december dec dezember dez',
];

const days = { '0': 'today heute', '-1': 'yesterday gestern', '-2': 'vorgestern' };

/** Parts of a day, in hours. A night begins on its day and ends on the next. */
const partsOfDay: [words: string, from: number, to: number][] = [
  ['morning morgen morgens vormittag vormittags früh', 6, 12],
  ['afternoon nachmittag nachmittags', 12, 18],
  ['evening abend abends', 18, 24],
  ['night nacht nachts', 22, 30],
];

const clockWords: Record<string, string> = { '12': 'noon midday mittag', '0': 'midnight mitternacht' };

function indexed<T>(entries: Iterable<readonly [string, T]>): ReadonlyMap<string, T> {
  const found = new Map<string, T>();
  for (const [words, value] of entries) for (const word of words.split(' ')) found.set(word, value);
  return found;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

export const SIZES = indexed(Object.entries(sizes).map(([size, all]) => [all, size as Size]));
export const WEEKDAYS = indexed(weekdays.map((all, day) => [all, day]));
export const MONTHS = indexed(months.map((all, month) => [all, month + 1]));
export const DAYS = indexed(Object.entries(days).map(([offset, all]) => [all, Number(offset)]));
export const PARTS = indexed(partsOfDay.map(([all, from, to]) => [all, { from, to }]));
export const HOURS = indexed(Object.entries(clockWords).map(([hour, all]) => [all, Number(hour)]));

export const ONE = words('a an one ein eine einem einen einer eines');
export const NOW = words('now jetzt');
export const LAST = words(
  'last past previous letzte letzten letzter letztes letztem vergangene vergangenen vergangener',
);
export const THIS = words('this current diese diesen dieser dieses aktuelle');
export const AGO = words('ago');
export const BEFORE_NOW = words('vor');
export const SINCE = words('since seit');
export const FROM = words('from von between zwischen');
export const TO = words('to until till through bis und and');
/** Words that say nothing: `at`, `on`, `the`, `Uhr`. German `am` is one only where it does not stand after a number. */
export const FILLERS = words('at on the um der die das den dem in im clock uhr of o’clock');

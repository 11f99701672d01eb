// Cron expressions as the service reads them (signing/src/repeat.rs): what they match, and which one is none. Pure.

/** Five fields, each with the numbers that it names. */
export interface Cron {
  minutes: Part;
  hours: Part;
  days: Part;
  months: Part;
  /** 0 is Sunday. */
  weekdays: Part;
}

export interface Part {
  /** Sorted. */
  values: number[];
  /** It is `*` alone. */
  isAny: boolean;
  /** Of a `*` with a step that divides the hour or the day: the step. Another one has a shorter gap at its end. */
  step: number | null;
  /** It has a `*` or a step in it. */
  isLoose: boolean;
}

/** The fields have other bounds, or names. */
const FIELDS = [
  { least: 0, most: 59, names: [] },
  { least: 0, most: 23, names: [] },
  { least: 1, most: 31, names: [] },
  {
    least: 1,
    most: 12,
    names: ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'],
  },
  // 7 is Sunday, too.
  { least: 0, most: 7, names: ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'] },
] as const;

type Field = (typeof FIELDS)[number];

/** Why a text is no expression: it has not five fields, one of them is none, or it is never due. */
export type CronFault = 'fields' | 'syntax' | 'never';

const MOST_CHARACTERS = 200;
/** The most days that a month has. */
const LENGTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

export function readCron(text: string): Cron | { fault: CronFault } {
  const words = text.split(' ').filter(Boolean);
  if (text.length > MOST_CHARACTERS || words.length !== 5) return { fault: 'fields' };
  const parts = FIELDS.map((field, index) => readField(words[index] ?? '', field));
  const [minutes, hours, days, months, weekdays] = parts;
  if (!minutes || !hours || !days || !months || !weekdays) return { fault: 'syntax' };
  const sundays = weekdays.values.map((day) => day % 7);
  const cron = {
    minutes,
    hours,
    days,
    months,
    weekdays: { ...weekdays, values: [...new Set(sundays)].sort((a, b) => a - b) },
  };
  return isEverDue(cron) ? cron : { fault: 'never' };
}

/** Whether one of its months has one of its days. Where days of the week count as well, some day always fits. */
function isEverDue({ days, months, weekdays }: Cron): boolean {
  if (!weekdays.isAny) return true;
  return months.values.some((month) => (days.values[0] ?? 32) <= (LENGTHS[month - 1] ?? 0));
}

function readField(word: string, field: Field): Part | null {
  const values = new Set<number>();
  let step: number | null = null;
  let isLoose = false;
  for (const item of word.split(',')) {
    const [range = '', by, ...rest] = item.split('/');
    if (rest.length > 0) return null;
    const every = by === undefined ? 1 : whole(by);
    const bounds = boundsOf(range, field);
    // A single number has no step.
    if (!bounds || !every || (by !== undefined && !/[*-]/.test(range))) return null;
    isLoose ||= range === '*' || by !== undefined;
    if (range === '*') step = every;
    for (let value = bounds[0]; value <= bounds[1]; value += every) values.add(value);
  }
  const isAny = word === '*';
  const isList = word.includes(',');
  const isEven = step !== null && values.size > 1 && (field.most - field.least + 1) % step === 0;
  return { values: [...values].sort((a, b) => a - b), isAny, step: isEven && !isAny && !isList ? step : null, isLoose };
}

function boundsOf(range: string, field: Field): [number, number] | null {
  // The whole week, with its Sunday once.
  if (range === '*') return [field.least, field.most === 7 ? 6 : field.most];
  const [from, to, ...rest] = range.split('-');
  if (rest.length > 0) return null;
  const first = numberOf(from ?? '', field);
  const last = to === undefined ? first : numberOf(to, field);
  if (first === null || last === null || first > last || first < field.least || last > field.most) return null;
  return [first, last];
}

function numberOf(word: string, { names, least }: Field): number | null {
  const named = (names as readonly string[]).indexOf(word.toUpperCase());
  return named === -1 ? whole(word) : named + least;
}

function whole(word: string): number | null {
  return /^\d{1,3}$/.test(word) ? Number(word) : null;
}

/** Whether a day is one of its days. Where both kinds of days are restricted, either is enough. */
export function fitsDay({ days, months, weekdays }: Cron, year: number, month: number, day: number): boolean {
  if (!months.values.includes(month)) return false;
  const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay();
  const [isDay, isWeekday] = [days.values.includes(day), weekdays.values.includes(weekday)];
  return days.isAny || weekdays.isAny ? isDay && isWeekday : isDay || isWeekday;
}

/** One time of the day: the clocks' changes move it and do not double it. */
export function isFixed({ minutes, hours }: Cron): boolean {
  return [minutes, hours].every((part) => part.values.length === 1 && !part.isLoose);
}

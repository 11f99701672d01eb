// A time by the reader's clock, without its zone, as fields have it: ui/TimeField.svelte.
import { preferences } from '../text/preferences.svelte';
import { partsOf } from './times';

const LOCAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/;

type Moment = string | number | null | undefined;

/** `2026-11-21T22:05` for a time of the service. */
export function toLocal(moment: Moment): string {
  return toLocalSecond(moment).slice(0, 16);
}

/** `2026-11-21T22:05:09` for a time of the service. */
export function toLocalSecond(moment: Moment): string {
  if (moment === null || moment === undefined) return '';
  const at = new Date(moment).getTime();
  if (Number.isNaN(at)) return '';
  const [year, ...parts] = partsOf(at);
  const [month, day, hour, minute, second] = parts.map((part) => String(part).padStart(2, '0'));
  return `${String(year).padStart(4, '0')}-${month}-${day}T${hour}:${minute}:${second}`;
}

/** The time that a field says, as the service writes it; null where it says none. */
export function fromLocal(text: string): string | null {
  if (!LOCAL.test(text)) return null;
  const date = new Date(preferences.zone === 'utc' ? `${text}Z` : text);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** The same as an address has it: without fractions where there are none. */
export function fromLocalSecond(text: string): string | null {
  return fromLocal(text)?.replace('.000Z', 'Z') ?? null;
}

/** Whether the reader's calendar and clock have that time: not on a thirtieth of February, nor in an hour that is skipped. */
export function existsLocally(text: string): boolean {
  const moment = fromLocal(text);
  return moment !== null && toLocalSecond(moment) === (text.length === 16 ? `${text}:00` : text);
}

// What `<input type="datetime-local">` takes and gives: a time by the clock of this computer, without its zone.

type Moment = string | number | null | undefined;

/** `2026-11-21T22:05` for a time of the service. */
export function toLocal(moment: Moment): string {
  return toLocalSecond(moment).slice(0, 16);
}

/** `2026-11-21T22:05:09` for a time of the service. */
export function toLocalSecond(moment: Moment): string {
  if (moment === null || moment === undefined) return '';
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return '';
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${String(date.getFullYear()).padStart(4, '0')}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The time that a field says, as the service writes it; null where it says none. */
export function fromLocal(text: string): string | null {
  if (!text) return null;
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** The same as an address has it: without fractions where there are none. */
export function fromLocalSecond(text: string): string | null {
  return fromLocal(text)?.replace('.000Z', 'Z') ?? null;
}

/** The time zone of this computer. */
export function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
}

/** What `datetime-local` shows of a time, in local time. */
export function fieldOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  const two = (part: number) => String(part).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export interface Faults {
  from: string | null;
  to: string | null;
}

/** What is wrong with two times that were typed. */
export function faultsOf(from: string, to: string, now: number): Faults {
  const [begin, end] = [secondsOf(from), secondsOf(to)];
  return {
    from: begin === null ? 'Give a date and a time.' : begin >= now ? 'It has not come yet.' : null,
    to:
      end === null
        ? 'Give a date and a time.'
        : begin !== null && end <= begin
          ? 'It must be later than the first.'
          : null,
  };
}

export function secondsOf(field: string): number | null {
  const seconds = new Date(field).getTime() / 1000;
  return Number.isFinite(seconds) ? seconds : null;
}

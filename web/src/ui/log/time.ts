/** A moment of a line, by this machine's clock: `11-21`, `21:43:49`, `.117`. */
export function clockTime(at: number): { day: string; clock: string; ms: string } {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return {
    day: `${two(date.getMonth() + 1)}-${two(date.getDate())}`,
    clock: `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`,
    ms: `.${String(date.getMilliseconds()).padStart(3, '0')}`,
  };
}

/** What was run before, newest first, each once. */
export function distinct(commands: string[]): string[] {
  return [...new Set(commands)];
}

/** Goes through what was run before with the arrow keys, as a shell does, while the field holds nothing of its own. */
export class Recall {
  #at = -1;

  /** What the field shows after a step back (`1`) or forth (`-1`); null when the key is the field's own. */
  step(past: string[], value: string, by: 1 | -1): string | null {
    if (value !== '' && value !== past[this.#at]) return null;
    const at = value === '' ? -1 : this.#at;
    if (by === -1 && at < 0) return null;
    this.#at = Math.min(at + by, past.length - 1);
    return past[this.#at] ?? '';
  }
}

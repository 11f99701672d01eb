// What is shown when while a recording is played. Pure: the caller has the clock and says how much time has passed.

/** A time without output is no longer than this when it is played. */
export const MOST_IDLE_SECONDS = 2;

export const SPEEDS = [1, 2, 4] as const;
export type Speed = (typeof SPEEDS)[number];

/** The most time that passes at once: a page that was hidden continues where it stopped. */
const MOST_STEP_MS = 1000;

/** The times of a recording as it is played: without long pauses. */
export class Timeline {
  /** When each event is shown, in seconds from the beginning. */
  readonly at: readonly number[];
  readonly duration: number;
  /** Whether a pause was shortened. */
  readonly isShortened: boolean;
  readonly #original: readonly number[];

  /** `seconds` are the times of the events, in order. */
  constructor(seconds: readonly number[], mostIdle = MOST_IDLE_SECONDS) {
    let saved = 0;
    let last = 0;
    let shown = 0;
    this.at = seconds.map((time) => {
      saved += Math.max(0, time - last - mostIdle);
      last = time;
      // A difference of such numbers may be a little less than the one before it.
      shown = Math.max(shown, time - saved);
      return shown;
    });
    this.duration = this.at.at(-1) ?? 0;
    this.isShortened = saved > 0;
    this.#original = seconds;
  }

  /** How many events have been shown at a time. */
  countAt(position: number): number {
    let [low, high] = [0, this.at.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.at[middle] ?? Infinity) <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The time of the recording at a time of the player: within a pause, as near to its beginning as it is played. */
  originalAt(position: number): number {
    const count = this.countAt(position);
    const [shown, original] = [this.at[count - 1] ?? 0, this.#original[count - 1] ?? 0];
    return original + Math.max(0, Math.min(position, this.duration) - shown);
  }
}

/** The clock of a player, in seconds from the beginning. It stops at the end. */
export class Playback {
  readonly duration: number;
  #position = 0;
  #isPlaying = false;
  #speed: Speed = 1;

  constructor(duration: number) {
    this.duration = duration;
  }

  get position(): number {
    return this.#position;
  }

  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  get hasEnded(): boolean {
    return this.#position >= this.duration;
  }

  get speed(): Speed {
    return this.#speed;
  }

  set speed(speed: Speed) {
    this.#speed = speed;
  }

  /** Plays from where it is; from the beginning where it has ended. */
  play(): void {
    if (this.hasEnded) this.#position = 0;
    this.#isPlaying = this.duration > 0;
  }

  pause(): void {
    this.#isPlaying = false;
  }

  /** So much time has passed. */
  advance(ms: number): void {
    if (!this.#isPlaying) return;
    const step = Math.min(Math.max(ms, 0), MOST_STEP_MS);
    this.seek(this.#position + (step / 1000) * this.#speed);
    if (this.hasEnded) this.#isPlaying = false;
  }

  /** Goes to a time; to the beginning or the end where it is before or after. */
  seek(position: number): void {
    if (!Number.isNaN(position)) this.#position = Math.min(Math.max(position, 0), this.duration);
  }
}

/** Clocks that differ by less agree: a `Date` header tells seconds, and an answer takes a while. */
const AGREE_MS = 3_000;

/**
 * The service's present. Times that are shown and compared are the service's, and a browser's clock may be hours off, so what
 * the service's answers say of the time is believed.
 */
class Clock {
  /** To the second, for ages that are shown. It stands still while the tab is hidden. */
  now = $state(Date.now());
  /** How far the service's clock is ahead of this browser's. */
  #offsetMs = 0;

  constructor() {
    // Of this page: a test's is gone before its timers are.
    const page = document;
    setInterval(() => {
      if (!page.hidden) this.now = this.present();
    }, 1000);
    page.addEventListener('visibilitychange', () => (this.now = this.present()));
  }

  /** The present, as exactly as it is known. */
  present(): number {
    return Date.now() + this.#offsetMs;
  }

  /** Hears the `Date` of an answer, which lies between when it was asked for and when it came: a slow one tells an earlier time. */
  heard(date: string | null, askedAt = Date.now(), here = Date.now()): void {
    // The header leaves out the parts of a second.
    const at = date ? Date.parse(date) + 500 : Number.NaN;
    if (Number.isNaN(at)) return;
    if (at > askedAt + this.#offsetMs - AGREE_MS && at < here + this.#offsetMs + AGREE_MS) return;
    const offset = at - here;
    this.#offsetMs = Math.abs(offset) < AGREE_MS ? 0 : offset;
    this.now = this.present();
  }
}

export const clock = new Clock();

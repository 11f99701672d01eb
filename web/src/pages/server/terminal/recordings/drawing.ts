// Brings a screen to any point of a recording: forwards by what was shown in between, backwards from the beginning.
import type { Cast, CastEvent, Size } from './cast';

/** Characters that are drawn at once, of one output too: a seek over megabytes must not hold up the page. */
const MOST_AT_ONCE = 32 * 1024;

/** What is drawn on. `write` calls back when the text is on the screen. */
export interface Sheet {
  write(text: string, done: () => void): void;
  resize(size: Size): void;
  /** Empties it, whatever was written before. */
  reset(): void;
}

export class Drawing {
  readonly #cast: Cast;
  readonly #sheet: Sheet;
  /** How many events are on the screen, how many characters of the next one, and how many events are to be there. */
  #drawn = 0;
  #begun = 0;
  #wanted = 0;
  #isWriting = false;
  #hasEnded = false;

  constructor(cast: Cast, sheet: Sheet) {
    this.#cast = cast;
    this.#sheet = sheet;
    sheet.resize(cast.size);
  }

  /** Shows the first so many events. What is wanted last counts, however much is still on its way. */
  show(count: number): void {
    this.#wanted = count;
    if (!this.#isWriting) this.#draw();
  }

  stop(): void {
    this.#hasEnded = true;
  }

  #draw(): void {
    if (this.#hasEnded) return;
    if (this.#wanted < this.#drawn || (this.#wanted === this.#drawn && this.#begun > 0)) {
      this.#sheet.reset();
      this.#sheet.resize(this.#cast.size);
      this.#drawn = this.#begun = 0;
    }
    let text = '';
    let size: Size | null = null;
    while (this.#drawn < this.#wanted && text.length < MOST_AT_ONCE) {
      const event = this.#cast.events[this.#drawn] as CastEvent;
      if ('output' in event) {
        const piece = event.output.slice(this.#begun, this.#begun + MOST_AT_ONCE - text.length);
        text += piece;
        this.#begun += piece.length;
        if (this.#begun < event.output.length) break;
        this.#begun = 0;
      }
      // What came before belongs to the old size, and has to be there first. Of sizes without output only the last is seen.
      else if (text === '') size = event.size;
      else break;
      this.#drawn += 1;
    }
    if (size) this.#sheet.resize(size);
    if (text !== '') this.#write(text);
  }

  #write(text: string): void {
    this.#isWriting = true;
    try {
      this.#sheet.write(text, () => {
        this.#isWriting = false;
        this.#draw();
      });
    } catch (error) {
      // Nobody calls back then; what is wanted next is drawn all the same.
      this.#isWriting = false;
      throw error;
    }
  }
}

import { test, type Page } from '@playwright/test';

/** Counts what somebody clicks on a page, over all its documents. */
export class Clicks {
  #clicks = 0;
  #began = performance.now();

  static async on(page: Page): Promise<Clicks> {
    const clicks = new Clicks();
    await page.exposeBinding('signalboxClicked', () => void (clicks.#clicks += 1));
    await page.addInitScript(() => {
      const clicked = (window as unknown as { signalboxClicked(): void }).signalboxClicked;
      // A click on a label is followed by one that the browser makes for its field: that one has no place.
      const count = (event: MouseEvent) => event.isTrusted && event.detail > 0 && clicked();
      document.addEventListener('click', count, { capture: true });
    });
    return clicks;
  }

  /** How many there were. Notes them in the report, with the seconds since the last note: `part` is what they led to. */
  noted(part: string): number {
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(1);
    test.info().annotations.push({ type: 'cost', description: `${part}: ${this.#clicks} clicks, ${seconds} s` });
    this.#began = performance.now();
    return this.#clicks;
  }
}

// What is pressed is no smaller than 24 by 24 px, or has that much room around it (WCAG 2.5.8), with a mouse and on a phone.
import type { Page } from '@playwright/test';
import { expect } from './test.ts';

const LEAST = 24;

/** What can be pressed and is too small: links within a sentence aside, whose size is that of the text. */
async function tooSmall(page: Page): Promise<string[]> {
  return page.evaluate((least) => {
    const pressed =
      'a[href], button, input:not([type="hidden"]), select, textarea, summary, [tabindex="0"][role], ' +
      '[role="switch"], [role="checkbox"], [role="option"], [role="tab"], [role="slider"]';
    const isSentence = (element: Element) => {
      if (getComputedStyle(element).display !== 'inline') return false;
      const around = element.closest('p, li, dd, td, h1, h2, h3, figcaption, span') ?? element.parentElement;
      return (around?.textContent ?? '').trim().length > (element.textContent ?? '').trim().length;
    };
    // Lines of a log and of the heat map are as high as their text. Both have an equivalent: the line's own page of details
    // opens by key, and the table below the map has larger buttons.
    const ofLines = '[role="log"] .open, .names a';
    // The field that takes the keys of a terminal is pressed by pressing its screen.
    const ofScreen = '.xterm textarea';
    const faults: string[] = [];
    for (const element of document.querySelectorAll<HTMLElement>(pressed)) {
      if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: false })) continue;
      if (element.matches(`${ofLines}, ${ofScreen}`)) continue;
      if (element.closest('.sr-only, [inert], [aria-hidden="true"]') || isSentence(element)) continue;
      // A field's label is pressed like the field.
      const labels = element instanceof HTMLInputElement ? [...(element.labels ?? [])] : [];
      const boxes = [element, ...labels].map((each) => each.getBoundingClientRect());
      if (boxes.every(({ width, height }) => width === 0 || height === 0)) continue;
      // What a link lays over its row is a part of it.
      const over = getComputedStyle(element, '::after');
      const isSpread = over.content !== 'none' && over.position === 'absolute';
      const isLarge = boxes.some(({ width, height }) => width >= least - 0.5 && height >= least - 0.5);
      if (isLarge || isSpread) continue;
      const [{ width, height }] = boxes as [DOMRect];
      const name = element.getAttribute('aria-label') ?? (element.textContent ?? '').trim().slice(0, 40);
      faults.push(`${element.tagName.toLowerCase()}.${element.className} "${name}" ${width} x ${height}`);
    }
    return faults;
  }, LEAST);
}

/** Everything on the page is large enough to press. */
export async function expectTargets(page: Page): Promise<void> {
  await expect.poll(() => tooSmall(page)).toEqual([]);
}

// Nothing is cut or out of reach at any width: what does not fit wraps, scrolls in a box of its own on small screens, or says
// in its title what is left out.
import type { Page } from '@playwright/test';
import { expect, expectFits } from './test.ts';

const WIDTHS = [390, 640, 820, 1024, 1100, 1280, 1440, 1920];

/** From here on no table scrolls sideways. */
const DESK = 1024;

/** What is cut without saying so, and what scrolls sideways, each with its text. */
async function faultsOf(page: Page, isDesk: boolean): Promise<string[]> {
  return page.evaluate((noneScrolls) => {
    const told = (element: Element) =>
      `<${element.tagName.toLowerCase()} class="${element.className}"> ${(element.textContent ?? '').trim().slice(0, 60)}`;
    const faults: string[] = [];
    for (const element of document.querySelectorAll<HTMLElement>('body *')) {
      const style = getComputedStyle(element);
      // Of no size, hidden, or for those who hear the page.
      if (
        element.clientWidth < 2 ||
        style.visibility === 'hidden' ||
        element.closest('.sr-only, [aria-hidden="true"], canvas, svg')
      )
        continue;
      const beyond = element.scrollWidth - element.clientWidth;
      if (beyond <= 1) continue;
      const isScrolled = /auto|scroll/.test(style.overflowX);
      const isCut = /hidden|clip/.test(style.overflowX);
      const isCode =
        element.matches('pre, code, textarea, input') || element.closest('pre, .pane, [data-scrolls]') !== null;
      if (isScrolled && noneScrolls && !isCode) faults.push(`scrolls by ${beyond}: ${told(element)}`);
      const text = (element.textContent ?? '').trim();
      const isSaid = element.closest('[title]') !== null || element.querySelector('[title]') !== null;
      if (isCut && text && !isSaid && !isCode) faults.push(`cut by ${beyond}: ${told(element)}`);
    }
    return faults;
  }, isDesk);
}

/** What can be pressed and lies beyond the window's edge, in no box that scrolls there. */
async function outOfReach(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const faults: string[] = [];
    for (const element of document.querySelectorAll<HTMLElement>('a, button, input, select, [role="switch"]')) {
      const box = element.getBoundingClientRect();
      if (box.width === 0 || element.closest('.sr-only, [aria-hidden="true"], [inert]') || element.matches('.sr-only'))
        continue;
      let scroller = element.parentElement;
      while (scroller && !/auto|scroll/.test(getComputedStyle(scroller).overflowX)) scroller = scroller.parentElement;
      if (
        !scroller &&
        (box.right > innerWidth + 1 || box.left < -1) &&
        getComputedStyle(element).position !== 'absolute'
      )
        faults.push(
          `${element.tagName.toLowerCase()} ${element.getAttribute('aria-label') ?? element.textContent?.trim()}`,
        );
    }
    return faults;
  });
}

/** The page is whole at every width. */
export async function expectWhole(page: Page): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    await expectFits(page);
    await expect.poll(() => faultsOf(page, width >= DESK), { message: `at ${width}` }).toEqual([]);
    await expect.poll(() => outOfReach(page), { message: `at ${width}` }).toEqual([]);
  }
}

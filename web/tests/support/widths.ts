// Nothing is cut or out of reach at any width: what does not fit wraps, becomes cards on a phone, or says in its title what is
// left out.
import type { Locator, Page } from '@playwright/test';
import { expect, expectFits } from './test.ts';

const WIDTHS = [390, 640, 820, 1024, 1100, 1280, 1440, 1920];

/** On a phone nothing scrolls sideways. Between that and a desk a table may, until all of its columns fit. */
const PHONE = 390;
const DESK = 1024;

/** What may scroll sideways at every width, and why. */
const SCROLLS: [why: string, what: string][] = [
  ['code and what people type keep their lines', 'pre, code, textarea, input'],
  ['lines of a log are as long as they were written', '.pane, [role="log"]'],
  ['a terminal has the columns that its programs count on', '.xterm, .screen'],
  ['a strip of choices has one line, in which Tab brings each into sight', 'nav.tabs, .levels, .keys'],
  ['the tags of a fleet are such a strip, and the tools and sources of a log', '.tags, .tools > .row, .sources'],
  ['a chart as a table has a column for each of its lines', 'figure .box'],
  ['tables of documents keep their columns, which are compared', 'article > .table-box'],
];
/** Rows of a legend that have no room on a wall, where nobody scrolls, are left out as a whole. */
const LEAVES_OUT = '.wall figure > ul';
const MAY_SCROLL = SCROLLS.map(([, what]) => what).join(', ');

/** A longer word may have to break on a phone. */
const LONGEST_WORD = 16;

/** What is cut without saying so, what scrolls sideways, and names that break in mid-word, each with its text. */
function faultsOf(root: Locator, width: number): Promise<string[]> {
  const noneScrolls = width <= PHONE || width >= DESK;
  const rules = { noneScrolls, mayScroll: MAY_SCROLL, leavesOut: LEAVES_OUT, longestWord: LONGEST_WORD };
  return root.evaluate((body, { noneScrolls, mayScroll, leavesOut, longestWord }) => {
    const faults = new Set<string>();
    const words = (text: string | null) => (text ?? '').replace(/\s+/g, ' ').trim();
    const told = (element: Element) =>
      `<${element.tagName.toLowerCase()} class="${element.getAttribute('class') ?? ''}"> ${words(element.textContent).slice(0, 60)}`;
    // Of no size, hidden, or for those who hear the page.
    const isUnseen = (element: Element) =>
      element.closest('.sr-only, [aria-hidden="true"], [inert], canvas, svg') !== null ||
      !element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    const isOfCode = (element: Element) => element.closest('pre, textarea, .pane, [role="log"], .xterm') !== null;
    /** Whether a title has every longer word of the text: of the element, or of what it stands in. A time is there in full. */
    const isSaid = (element: Element, text: string) => {
      if (element.closest('time[title]')) return true;
      const all = text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
      const said = all.some((word) => word.length > 2) ? all.filter((word) => word.length > 2) : all;
      if (said.length === 0) return false;
      for (let at: Element | null = element; at; at = at.parentElement) {
        const title = at.getAttribute('title') ?? '';
        if (title !== '' && said.every((word) => title.includes(word))) return true;
      }
      return false;
    };
    const textsIn = (element: Element): Text[] => {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      const found: Text[] = [];
      while (walker.nextNode()) {
        const text = walker.currentNode as Text;
        if (words(text.data) && text.parentElement && !isUnseen(text.parentElement)) found.push(text);
      }
      return found;
    };

    /** The boxes that may cut an element, from the inside out: one that is placed stands in none that is not. */
    const around = (element: Element): Element[] => {
      const boxes = [element];
      let { position } = getComputedStyle(element);
      for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
        if (position === 'fixed') break;
        const style = getComputedStyle(box);
        const isPlaced =
          style.position !== 'static' ||
          style.transform !== 'none' ||
          /strict|content|layout|paint/.test(style.contain);
        if (position === 'absolute' && !isPlaced) continue;
        boxes.push(box);
        ({ position } = style);
      }
      return boxes;
    };
    /** Where something is cut: by a box that hides what leaves it, or that does not grow with what is in it. */
    const cut = (element: Element, rects: DOMRect[]): string | null => {
      let [isReachedX, isReachedY] = [false, false];
      for (const box of around(element)) {
        const { overflowX, overflowY, contain, display } = getComputedStyle(box);
        if (display === 'inline' || display === 'contents') continue;
        const hides = /hidden|clip/;
        const isFixed = /strict|content|paint|size/.test(contain.replace('inline-size', ''));
        const [hidesX, hidesY] = [isFixed || hides.test(overflowX), isFixed || hides.test(overflowY)];
        const outer = box.getBoundingClientRect();
        // Put away on purpose.
        if ((hidesX || hidesY) && (box.clientWidth < 2 || box.clientHeight < 2)) return null;
        const [left, top] = [outer.left + box.clientLeft, outer.top + box.clientTop];
        const [right, bottom] = [left + box.clientWidth, top + box.clientHeight];
        for (const rect of rects) {
          if (hidesX && !isReachedX && (rect.right > right + 1.5 || rect.left < left - 1.5))
            return `beside ${told(box)}`;
          // A line of text is often a little higher than its box.
          const gone = Math.max(rect.bottom - bottom, top - rect.top);
          if (gone > rect.height * 0.8 && box.matches(leavesOut)) return null;
          if (hidesY && !isReachedY && gone > rect.height / 4) return `below ${told(box)}`;
        }
        isReachedX ||= /auto|scroll/.test(overflowX);
        isReachedY ||= /auto|scroll/.test(overflowY);
      }
      return null;
    };

    for (const element of body.querySelectorAll<HTMLElement>('*')) {
      if (element.clientWidth < 2 || isUnseen(element)) continue;
      const beyond = element.scrollWidth - element.clientWidth;
      if (beyond <= 1) continue;
      const { overflowX } = getComputedStyle(element);
      if (/auto|scroll/.test(overflowX) && noneScrolls && !element.closest(mayScroll))
        faults.add(`scrolls by ${beyond}: ${told(element)}`);
      // What is last is what is cut.
      const last = textsIn(element).at(-1);
      if (/hidden|clip/.test(overflowX) && last?.parentElement && !isOfCode(element))
        if (!isSaid(last.parentElement, last.data)) faults.add(`cut by ${beyond}: ${told(element)}`);
    }

    const range = document.createRange();
    for (const text of textsIn(body)) {
      const element = text.parentElement;
      if (!element || isOfCode(element)) continue;
      range.selectNodeContents(text);
      const rects = [...range.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
      const where = cut(element, rects);
      if (where !== null && !isSaid(element, text.data)) faults.add(`cut ${where}: ${words(text.data).slice(0, 60)}`);
      const tops = new Set(rects.map(({ top }) => Math.round(top)));
      if (tops.size < 2 || element.closest('code, .lines') || getComputedStyle(element).hyphens === 'auto') continue;
      for (const { 0: word, index } of text.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
        if (word.length > longestWord || /[\p{N}_]/u.test(word)) continue;
        // The letters between two signs of a fingerprint are no word.
        if (/SHA256:\S*$/.test(text.data.slice(0, index))) continue;
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        if (lines.size > 1) faults.add(`breaks "${word}": ${told(element)}`);
      }
    }

    for (const element of body.querySelectorAll('a, button, input, select, textarea')) {
      if (isUnseen(element) || isOfCode(element)) continue;
      const rect = element.getBoundingClientRect();
      const where = rect.width > 0 && rect.height > 0 ? cut(element, [rect]) : null;
      if (where !== null && !isSaid(element, element.textContent ?? ''))
        faults.add(`out of reach ${where}: ${told(element)}`);
    }
    return [...faults];
  }, rules);
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

/** What is still wrong when the page has had time to follow the width of its window. */
async function lasting(read: () => Promise<string[]>): Promise<string[]> {
  let found: string[] = [];
  const isWhole = async () => (found = await read()).length === 0;
  await expect
    .poll(isWhole, { timeout: 30_000 })
    .toBe(true)
    .catch(() => undefined);
  return found;
}

/** The page is whole at every width. The message lists what is wrong at each of them. */
export async function expectWhole(page: Page): Promise<void> {
  const faults: string[] = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    await expectFits(page);
    const read = async () => [...(await faultsOf(page.locator('body'), width)), ...(await outOfReach(page))];
    faults.push(...(await lasting(read)).map((fault) => `at ${width}: ${fault}`));
  }
  expect(faults).toEqual([]);
}

/** A dialog is whole on a phone, and within its window. */
export async function expectWholeOnPhone(page: Page, dialog: Locator): Promise<void> {
  await page.setViewportSize({ width: PHONE, height: 844 });
  await expectFits(page);
  await expect(dialog).toBeInViewport({ ratio: 1 });
  expect(await lasting(() => faultsOf(dialog, PHONE))).toEqual([]);
}

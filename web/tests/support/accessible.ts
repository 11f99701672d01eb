// What a program can see of a page's accessibility.
import type { Page } from '@playwright/test';
import axe from 'axe-core';
import { expect } from './test.ts';

/** The rules that see whether a page is light or dark. */
export const OF_COLOURS = ['color-contrast', 'link-in-text-block'];

/**
 * axe finds nothing on the page as it is: by these rules, or by all, those of good practice and of small targets too.
 *
 * No page has frames. For those, axe's own package for Playwright opens another page after each look, which took as long as the look.
 */
export async function expectAccessible(page: Page, ...rules: string[]): Promise<void> {
  // What follows a new size, such as that a region scrolls and so must be reached by keys, is done in the next frame.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  // Colours on their way from one to the other are nobody's to judge. One that is called off has ended too.
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((animation) => animation instanceof CSSTransition)
        .map((transition) => transition.finished),
    ),
  );
  expect(page.frames()).toHaveLength(1);
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  const which: axe.RunOptions =
    rules.length > 0 ? { runOnly: { type: 'rule', values: rules } } : { rules: { 'target-size': { enabled: true } } };
  const told = await page.evaluate(
    async (options) => {
      const { violations } = await (window as unknown as { axe: typeof axe }).axe.run(document, options);
      return violations.map(
        ({ id, help, nodes }) => `${id}: ${help}\n${nodes.map((node) => `  ${node.html}`).join('\n')}`,
      );
    },
    // Of what is well, nothing is collected: to name each element of a large page takes longer than to look at it.
    { ...which, resultTypes: ['violations'], selectors: false } satisfies axe.RunOptions,
  );
  expect(told).toEqual([]);
}

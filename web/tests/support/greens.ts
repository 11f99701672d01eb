import { expect, type Page } from '@playwright/test';

/** What of a page is painted in the colour that means "well". */
export function greens(page: Page): Promise<string[]> {
  return page.getByRole('main').evaluate((main) => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const isGreen = (colour: string): boolean => {
      if (!canvas) return false;
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [red = 0, green = 0, blue = 0, alpha = 0] = canvas.getImageData(0, 0, 1, 1).data;
      return alpha > 0 && green > red * 1.25 && green > blue * 1.15;
    };
    const hasText = (element: Element): boolean =>
      [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.nodeValue?.trim());
    // Marks of events on a time axis keep their colour: they are of their time.
    return [...main.querySelectorAll('*:not(.marks *)')]
      .filter((element) => element.checkVisibility() && element.getClientRects().length > 0)
      .filter((element) => {
        const { color, backgroundColor, borderLeftColor, borderLeftWidth } = getComputedStyle(element);
        const hasGreenEdge = borderLeftWidth !== '0px' && isGreen(borderLeftColor);
        return hasGreenEdge || isGreen(backgroundColor) || (hasText(element) && isGreen(color));
      })
      .map((element) => element.outerHTML.slice(0, 120));
  });
}

export async function expectNothingGreen(page: Page): Promise<void> {
  await expect.poll(() => greens(page)).toEqual([]);
}

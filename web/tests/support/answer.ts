import type { APIResponse, Page, Route } from '@playwright/test';

/**
 * What the service answers to a request that a test changes or delays. Playwright sends it on a connection of its own, which it keeps:
 * the service may close that one at the moment when it is used again.
 */
export function answerTo(route: Route, headers?: Record<string, string>): Promise<APIResponse> {
  return route.fetch({ maxRetries: 3, ...(headers ? { headers } : {}) });
}

/** Holds what is read from an address, as a slow line does. Returns what lets it through. */
export async function hold(page: Page, address: string | RegExp): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  await page.route(address, async (route) => {
    if (route.request().method() === 'GET') await held;
    await route.continue();
  });
  return release;
}

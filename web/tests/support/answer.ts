import type { APIResponse, Route } from '@playwright/test';

/**
 * What the service answers to a request that a test changes or delays. Playwright sends it on a connection of its own, which it keeps:
 * the service may close that one at the moment when it is used again.
 */
export function answerTo(route: Route, headers?: Record<string, string>): Promise<APIResponse> {
  return route.fetch({ maxRetries: 3, ...(headers ? { headers } : {}) });
}

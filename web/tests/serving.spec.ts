import { expect, test } from './support/test.ts';

test('a page asks nobody but the service, and breaks no rule of its policy', async ({ page, site }) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).origin));

  await page.goto('/');

  await expect(page).toHaveURL(/sign-in/);
  await page.waitForLoadState('networkidle');
  expect(new Set(asked)).toEqual(new Set([site.address]));
});

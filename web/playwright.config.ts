import { defineConfig } from '@playwright/test';
import { CHROMIUM } from './tests/support/chromium.ts';
import { inFirefox } from './tests/support/firefox.ts';

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  // Each worker has a service of its own. Much of a test's time is waiting: two more than CI has cores.
  workers: 4,
  fullyParallel: true,
  // A test that passes the second time is a bug, and who works on it is to see it. CI runs it again, like the others
  // (.config/nextest.toml), and names it at the end.
  retries: process.env.CI ? 2 : 0,
  forbidOnly: true,
  // Far over what anything takes here, so that only a hang ends in it, on a slow machine too.
  timeout: 240_000,
  expect: { timeout: 30_000 },
  reporter: process.env.CI ? 'line' : 'list',
  use: {
    viewport: { width: 1280, height: 800 },
    // To look into a failure: PLAYWRIGHT_TRACE=on. Always recorded it took a fifth of the time of all tests.
    trace: process.env.PLAYWRIGHT_TRACE ? 'retain-on-failure' : 'off',
    screenshot: 'only-on-failure',
  },
  projects: [
    {
      name: 'chromium',
      use: {
        launchOptions: {
          executablePath: CHROMIUM,
          args: [
            '--no-sandbox',
            '--disable-gpu',
            '--disable-quic',
            '--disable-background-networking',
            '--disable-component-update',
            // A name of this machine that is no secure one: see tests/clipboard.spec.ts.
            '--host-resolver-rules=MAP plain.test 127.0.0.1',
          ],
        },
      },
    },
    {
      name: 'firefox',
      grep: inFirefox(),
      use: {
        browserName: 'firefox',
        // Debian's, by WebDriver BiDi.
        channel: 'moz-firefox',
        launchOptions: {
          executablePath: process.env.SIGNALBOX_FIREFOX ?? '/usr/bin/firefox-esr',
          firefoxUserPrefs: {
            'network.dns.localDomains': 'plain.test',
            // Each page has the focus, though several windows are open.
            'focusmanager.testmode': true,
          },
        },
      },
    },
  ],
});

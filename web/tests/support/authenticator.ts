import type { Page } from '@playwright/test';
import type { Site } from './site.ts';

/** An authenticator of the browser that finds its passkeys by itself, and whose owner always agrees. */
export async function addAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('WebAuthn.enable');
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

/** Passkeys belong to a name: the same pages by that of this machine. */
export function atLocalhost(site: Site): string {
  return site.origin.replace('127.0.0.1', 'localhost');
}

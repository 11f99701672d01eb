import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page, Route } from '@playwright/test';
import { answerTo } from './answer.ts';
import type { Site } from './site.ts';

/** A slow machine must have opened the page before that: what is waited for is the end of it. */
export const LEFT_S = 25;

/** What an access token says. */
interface Claims {
  sub: string;
  sid: string;
  jti: string;
  iat: number;
  exp: number;
  typ: string;
}

/**
 * The same token with other times, in seconds from now, signed with the secret of the service whose data directory it is.
 * A page reckons with the length of a token's life, by its own clock; the service with its end.
 */
export function retimed(token: string, data: string, times: { issued: number; expires: number }): string {
  const [head = '', payload = ''] = token.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims;
  const now = Math.floor(Date.now() / 1000);
  const changed = { ...claims, jti: randomUUID(), iat: now + times.issued, exp: now + times.expires };
  const signed = `${head}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}`;
  const secret = readFileSync(join(data, 'jwt-secret'), 'utf8').trim();
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

interface Times {
  issued: number;
  expires: number;
}

const REFRESH = '**/api/v1/auth/refresh';

/** How each page's fleeting tokens end. */
const fleeting = new WeakMap<Page, () => Promise<void>>();

/** What the service gives whenever it is asked for a token, with other times in it; `once`: the next time alone. */
async function give(
  page: Page,
  site: Site,
  times: Times,
  once: boolean,
): Promise<{ expiresAt: number; end: () => Promise<void> }> {
  let isGiven = false;
  const answer = async (route: Route) => {
    // Not by `times`: a page repeats a request that takes long, and either answer may be the one that it takes.
    if (once && isGiven) return route.fallback();
    const response = await answerTo(route);
    const pair = (await response.json()) as { access_token: string };
    isGiven = true;
    given.expiresAt = Date.now() + times.expires * 1000;
    await route.fulfill({ response, json: { ...pair, access_token: retimed(pair.access_token, site.data, times) } });
  };
  const given = { expiresAt: Infinity, end: () => page.unroute(REFRESH, answer) };
  await page.route(REFRESH, answer);
  return given;
}

/** Changes the times of the next token. Says when that one expires. */
export function giveOnce(page: Page, site: Site, times: Times): Promise<{ expiresAt: number }> {
  return give(page, site, times, true);
}

/** Tokens with a life so short, for a page, that it waits for another one each time that it needs one, until something else is given. */
export async function giveFleeting(page: Page, site: Site): Promise<void> {
  const { end } = await give(page, site, { issued: 105, expires: 110 }, false);
  fleeting.set(page, end);
}

/** Ends `giveFleeting`: the next token is one of these times, which the page takes for one that lasts. */
export async function giveNext(page: Page, site: Site, times: Times): Promise<{ expiresAt: number }> {
  // First, so that no token of the service's own comes between the two: the page would ask for no other one.
  const next = await giveOnce(page, site, times);
  await fleeting.get(page)?.();
  return next;
}

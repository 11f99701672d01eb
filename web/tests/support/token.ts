import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

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

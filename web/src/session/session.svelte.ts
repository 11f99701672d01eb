// Who is signed in. The access token lives in memory only; the refresh token is a cookie that no script can read, so a
// page that was reloaded asks for an access token first. Tabs share the cookie, so they refresh in turn.
import { api, take, useTokens, type Answer } from '../api/client';
import { Failure, failureOf } from '../api/failure';
import type { Done, PasskeyLogin, Profile, TokenPair } from '../api/types';
import { takeRefresh } from '../boot/taken';
import { keep } from '../text/kept';
import { endOf, type Ended } from './ended';
import { orRepeated, REPEAT_MS } from './repeat';
import { dropAllTickets } from './tickets';
import { inTurn, TURN_MS } from './turn';

export type SessionState = 'starting' | 'unreachable' | 'signed-out' | 'signed-in';

/** Asks the service to keep the refresh token in its cookie. */
const COOKIE = { 'X-Refresh-Cookie': '1' };
/** The same from a page that does not know whether there is one: without it, the service answers that nobody is signed in. */
const COOKIE_IF_ANY = { 'X-Refresh-Cookie': 'if-any' };
/** Tells the next page that is opened here to show its outline at once: src/boot/boot.ts. */
const SIGNED_IN = 'signed-in';

/** A token is renewed when so much of its life is left, so that no request is made with one that ends on its way. */
const RENEW_BEFORE_MS = 2 * 60_000;
/** With so much of it left nobody has to wait for the new one. */
const ENOUGH_MS = 10_000;

/** What is to be done before a sign-out may delay it so long. */
const LAST_WORK_MS = 3_000;
/** So long the service has to answer to a sign-out: what the page shows goes with it. */
const LEAVING_MS = 5_000;

class Session {
  state = $state<SessionState>('starting');
  user = $state<Profile | null>(null);
  /** The service asks for a second factor, and the account has none. */
  lacksFactor = $state(false);
  /** How the last sign-in of this page ended; null where there was none. */
  ended = $state<Ended | null>(null);

  #token: string | null = null;
  #expiresAt = 0;
  /** Whose things this page has shown since it was loaded. */
  #shownTo: string | null = null;
  /** Counts those who were signed in here: an answer to an earlier one says nothing of the next. */
  #session = 0;
  #refreshing: Promise<string | null> | null = null;
  /** Somebody is signing out: whatever the service sends to the sockets until then, it was by hand. */
  #isLeaving = false;
  #beforeSignOut: (() => Promise<void>) | null = null;
  #others = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('session');

  constructor() {
    useTokens({ token: () => this.token(), refused: (token) => this.#refused(token) });
    this.#others?.addEventListener('message', (event) => {
      if (event.data === 'signed-out' && this.state === 'signed-in') this.#end('by-hand');
      // Somebody else may have signed in there: this page reloads and shows the account of that person.
      if (event.data === 'signed-in') location.reload();
    });
  }

  /** Finds out whether somebody is still signed in. */
  async start(): Promise<void> {
    // A page that says so keeps saying it, with its focus, while it tries again.
    if (this.state !== 'unreachable') this.state = 'starting';
    try {
      if (await this.#refresh()) await this.#signedIn();
      else this.state = 'signed-out';
    } catch (error) {
      this.state = failureOf(error).isPassing ? 'unreachable' : 'signed-out';
    }
  }

  async signIn(username: string, password: string, otp: string | null = null): Promise<void> {
    const pair = await take(
      api.POST('/api/v1/auth/login', {
        body: { username, password, ...(otp === null ? {} : { otp }) },
        headers: { ...COOKIE, 'Content-Type': 'application/x-www-form-urlencoded' },
        bodySerializer: (body) => new URLSearchParams(body as Record<string, string>).toString(),
      }),
    );
    await this.#take(pair);
  }

  /** Signs in with what a passkey has signed, which says whose it is: src/session/signed.ts. */
  async signInWithPasskey(credential: PasskeyLogin['credential']): Promise<void> {
    await this.#take(await take(api.POST('/api/v1/auth/passkeys/login', { body: { credential }, headers: COOKIE })));
  }

  async #take(pair: TokenPair): Promise<void> {
    this.#keep(pair.access_token);
    await this.#signedIn();
    this.#others?.postMessage('signed-in');
  }

  /** Reads the profile again, after the account's second factors changed. */
  async reload(): Promise<void> {
    this.user = await take(api.GET('/api/v1/auth/me'));
    const { totp, passkeys } = this.user.second_factor;
    if (totp || passkeys > 0) this.lacksFactor = false;
  }

  async register(input: {
    email: string;
    username: string;
    full_name: string;
    password: string;
    password_confirm: string;
    setup_code?: string;
    invitation?: string;
  }): Promise<void> {
    const made = await take(api.POST('/api/v1/auth/register', { body: input, headers: COOKIE }));
    this.#keep(made.access_token);
    await this.#signedIn();
    this.#others?.postMessage('signed-in');
  }

  /** Deletes the account of who is signed in here, and ends all its sessions. */
  async deleteAccount(password: string): Promise<void> {
    this.#isLeaving = true;
    try {
      await take(api.DELETE('/api/v1/auth/me', { body: { password }, headers: COOKIE }));
      this.#end('by-hand');
      this.#others?.postMessage('signed-out');
    } finally {
      this.#isLeaving = false;
    }
  }

  /** Does this before the next sign-out by hand, while requests still work. */
  beforeSignOut(work: () => Promise<void>): void {
    this.#beforeSignOut = work;
  }

  /** Signs out here and notifies the other tabs, whether or not the service could be notified. */
  async signOut(): Promise<void> {
    this.#isLeaving = true;
    // Not at any price: somebody waits, and wants to be signed out above all.
    const last = this.#beforeSignOut?.().catch(() => undefined);
    await Promise.race([last, new Promise((done) => setTimeout(done, LAST_WORK_MS))]);
    try {
      await Promise.race([take(api.POST('/api/v1/auth/logout', { headers: COOKIE })), tooLate(LEAVING_MS)]);
      this.#end('by-hand');
    } catch (error) {
      this.#end(failureOf(error).isPassing ? 'untold' : 'by-hand');
      throw error;
    } finally {
      this.#isLeaving = false;
      this.#others?.postMessage('signed-out');
    }
  }

  /** The token for a request or a socket; a new one when this one is about to expire. */
  async token(): Promise<string | null> {
    const leftMs = this.#expiresAt - Date.now();
    if (this.#token && leftMs > RENEW_BEFORE_MS) return this.#token;
    if (this.state === 'signed-out') return null;
    const token = this.#token;
    const renewed = this.renew();
    if (!token || leftMs <= ENOUGH_MS) return renewed;
    // The next one who asks tries again.
    renewed.catch(() => undefined);
    return token;
  }

  /** A new token, though the old one may still work. Callers at the same time share one request. */
  renew(): Promise<string | null> {
    if (this.#refreshing) return this.#refreshing;
    const mine = this.#refresh().finally(() => {
      if (this.#refreshing === mine) this.#refreshing = null;
    });
    return (this.#refreshing = mine);
  }

  async #refused(token: string): Promise<string | null> {
    if (this.#token !== token) return this.token();
    return this.renew();
  }

  async #refresh(): Promise<string | null> {
    const session = this.#session;
    try {
      const pair = await this.#askForTokens();
      // An older service has no body for this: during an update one may answer.
      if (!pair || !('access_token' in pair)) {
        if (session === this.#session) this.#end(null);
        return null;
      }
      // Somebody may have signed out by now, and only what is still to be said to the service needs it.
      if (session === this.#session) this.#keep(pair.access_token);
      return pair.access_token;
    } catch (error) {
      const failure = failureOf(error);
      if (failure.isPassing) throw failure;
      if (session === this.#session)
        this.#end(this.#isLeaving ? 'by-hand' : endOf(failure.code, this.state === 'signed-in'));
      return null;
    }
  }

  /** A pair of tokens, whose second one goes into the cookie; only a message where there was no cookie. */
  #askForTokens(): Promise<TokenPair | Done | undefined> {
    const isStarting = this.state === 'starting' || this.state === 'unreachable';
    const headers = isStarting ? COOKIE_IF_ANY : COOKIE;
    const ask = (signal: AbortSignal): Promise<Answer<TokenPair | Done | undefined>> =>
      api.POST('/api/v1/auth/refresh', { headers, signal });
    const early = takeRefresh();
    if (!early) return inTurn((signal) => take(orRepeated(ask(signal), () => ask(signal))));
    const first = early.then(async (response) => ({ response, ...(await bodyOf(response)) }));
    const leftMs = REPEAT_MS - performance.now();
    // It has this tab's turn, so its repetition takes none.
    return take(leftMs > 0 ? orRepeated(first, () => ask(AbortSignal.timeout(TURN_MS)), leftMs) : first);
  }

  #keep(token: string): void {
    this.#token = token;
    this.#expiresAt = expiryOf(token);
  }

  async #signedIn(): Promise<void> {
    const user = await take(api.GET('/api/v1/auth/me'));
    if (this.#shownTo !== null && this.#shownTo !== user.id) {
      // Somebody else was here before. What the page still holds of them, or waits for, goes with the page itself.
      location.reload();
      return new Promise(() => undefined);
    }
    this.#shownTo = user.id;
    this.user = user;
    this.ended = null;
    this.state = 'signed-in';
    keep(SIGNED_IN, '1');
  }

  #end(how: Ended | null): void {
    this.ended = how;
    this.#forget();
  }

  #forget(): void {
    this.#session += 1;
    this.#refreshing = null;
    this.#token = null;
    this.#expiresAt = 0;
    this.user = null;
    this.lacksFactor = false;
    keep(SIGNED_IN, null);
    dropAllTickets();
    if (this.state !== 'starting') this.state = 'signed-out';
  }
}

/** Fails after a while. */
function tooLate(afterMs: number): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(Failure.unreachable()), afterMs));
}

/** What an answer holds, as the client of the API gives it. */
async function bodyOf(response: Response): Promise<Omit<Answer<TokenPair | Done | undefined>, 'response'>> {
  const body: unknown = await response.json().catch(() => undefined);
  return response.ok ? { data: body as TokenPair | Done | undefined } : { error: body };
}

/** When a token expires by this machine's clock. What it claims is by the service's, so only its length is believed. */
export function expiryOf(token: string, now = Date.now()): number {
  try {
    const payload = token.split('.')[1] ?? '';
    const claims = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/'))) as { iat: number; exp: number };
    return now + (claims.exp - claims.iat) * 1000;
  } catch {
    return now;
  }
}

export const session = new Session();

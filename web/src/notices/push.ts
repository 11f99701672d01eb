// The subscription of this browser to push messages, and the channel that leads to it: public/sw.js shows what comes.
import { api, take } from '../api/client';
import { failureOf } from '../api/failure';
import { programOf } from '../pages/account/security/agent';
import { router } from '../router/router.svelte';
import { service } from '../session/service.svelte';
import { session } from '../session/session.svelte';
import { keep, kept } from '../text/kept';

/** What is kept of it in this browser. */
export interface Subscribed {
  /** Whose channel it is. */
  user: string;
  channel: string;
  endpoint: string;
}

const SUBSCRIBED = 'push';
/** Where the worker finds the channel: it has no other storage in common with pages. */
const CHANNEL = '/push-channel';

export function subscribed(text = kept(SUBSCRIBED)): Subscribed | null {
  try {
    const found: unknown = JSON.parse(text ?? 'null');
    const { user, channel, endpoint } = (found ?? {}) as Record<string, unknown>;
    if (typeof user !== 'string' || typeof channel !== 'string' || typeof endpoint !== 'string') return null;
    return { user, channel, endpoint };
  } catch {
    return null;
  }
}

/** Whether this browser can, and the service has a key to send with. */
export function canPush(): boolean {
  return isSecureContext && 'serviceWorker' in navigator && 'PushManager' in window && !!service.info?.push_key;
}

/** Subscribes, and makes the channel or leads the one that is there to the new subscription. */
export async function subscribe(): Promise<Subscribed> {
  const key = service.info?.push_key;
  const user = session.user?.id;
  if (!key || !user) throw new Error('there is nothing to subscribe to');
  const registration = await register();
  await navigator.serviceWorker.ready;
  const old = await registration.pushManager.getSubscription();
  // A subscription is bound to the key that it was made for.
  if (old && !isFor(old, key)) await old.unsubscribe();
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: bytesOf(key),
  });
  const { endpoint, keys } = subscription.toJSON();
  const settings = { endpoint: endpoint ?? '', keys: { p256dh: keys?.p256dh ?? '', auth: keys?.auth ?? '' } };
  const known = subscribed();
  const channel = (known?.user === user && (await leadHere(known.channel, settings))) || (await make(settings));
  const now = { user, channel, endpoint: settings.endpoint };
  keep(SUBSCRIBED, JSON.stringify(now));
  await (await caches.open(SUBSCRIBED)).put(CHANNEL, new Response(channel));
  session.beforeSignOut(unsubscribe);
  listen();
  return now;
}

type PushSettings = { endpoint: string; keys: { p256dh: string; auth: string } };

async function make(settings: PushSettings): Promise<string> {
  const { name } = programOf(navigator.userAgent);
  const body = { name: name.slice(0, 100), type: 'push' as const, settings };
  return (await take(api.POST('/api/v1/notifications/channels', { body }))).id;
}

/** Changes a channel to this subscription; null if it is gone. */
async function leadHere(id: string, settings: PushSettings): Promise<string | null> {
  const body = { type: 'push' as const, settings, enabled: true };
  try {
    return (await take(api.PUT('/api/v1/notifications/channels/{id}', { params: { path: { id } }, body }))).id;
  } catch (error) {
    if (failureOf(error).status === 404) return null;
    throw error;
  }
}

/** Ends the subscription, and deletes its channel. */
export async function unsubscribe(): Promise<void> {
  const known = subscribed();
  await forget();
  if (!known || known.user !== session.user?.id) return;
  const path = { id: known.channel };
  try {
    await take(api.DELETE('/api/v1/notifications/channels/{id}', { params: { path } }));
  } catch (error) {
    // One that is gone already is what was wanted.
    if (failureOf(error).status !== 404) throw error;
  }
}

/** Ends the subscription here. A channel that still leads to it ends with the next message. */
async function forget(): Promise<void> {
  keep(SUBSCRIBED, null);
  await caches.delete(SUBSCRIBED);
  const registration = await navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

/** Ends the subscription if somebody deleted its channel. Returns whether it is still there. */
export async function isStillThere(): Promise<boolean> {
  const known = subscribed();
  if (!known) return false;
  try {
    await take(api.GET('/api/v1/notifications/channels/{id}', { params: { path: { id: known.channel } } }));
    return true;
  } catch (error) {
    if (failureOf(error).status !== 404) return true;
    await forget();
    return false;
  }
}

/**
 * What a page owes the subscription of its browser: the newest worker, a new subscription where the old one has ended, an end
 * of that of somebody else, and the page that a click on a notification asks for.
 */
export async function keepUp(): Promise<void> {
  const known = subscribed();
  if (!known || !('serviceWorker' in navigator)) return;
  listen();
  if (known.user !== session.user?.id) return forget();
  await service.load();
  const key = service.info?.push_key;
  if (!canPush() || !key || Notification.permission !== 'granted') return;
  const subscription = await (await register()).pushManager.getSubscription();
  if (subscription?.endpoint === known.endpoint && isFor(subscription, key)) return;
  if (await isStillThere()) await subscribe();
}

let isListening = false;

/** Shows the page that a click on a notification asks for. */
function listen(): void {
  if (isListening) return;
  isListening = true;
  navigator.serviceWorker.addEventListener('message', ({ data }: MessageEvent<{ type?: string; path?: string }>) => {
    if (data.type === 'open' && data.path) router.go(data.path);
  });
}

function register(): Promise<ServiceWorkerRegistration> {
  return navigator.serviceWorker.register('/sw.js', { updateViaCache: 'none' });
}

function isFor(subscription: PushSubscription, key: string): boolean {
  const used = subscription.options.applicationServerKey;
  if (!used) return true;
  const [have, want] = [new Uint8Array(used), bytesOf(key)];
  return have.length === want.length && have.every((byte, index) => byte === want[index]);
}

/** What URL-safe base64 stands for. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

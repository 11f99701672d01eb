// Notifications of the browser. By push they come whether or not a page is open, and public/sw.js shows them; otherwise an open
// page does. Both carry the same tag, the id of the alert: a browser shows two of one alert as one.
import * as m from '#messages/notices';
import type { Alert } from '../api/types';
import { failureOf } from '../api/failure';
import { fleet } from '../live/fleet.svelte';
import { titleOf } from '../pages/alerts/sentence';
import { router } from '../router/router.svelte';
import { service } from '../session/service.svelte';
import { keep, kept } from '../text/kept';
import { canPush, isStillThere, subscribe, subscribed, unsubscribe } from './push';

/**
 * `insecure`: browsers allow it on pages by HTTPS alone. `unsupported`: this one cannot. `denied`: somebody forbade it in the
 * browser, where alone it can be allowed again. `off`, `on` (while a page is open) and `push`: as it was chosen here.
 */
export type DesktopState = 'insecure' | 'unsupported' | 'denied' | 'off' | 'on' | 'push';

const CHOSEN = 'browser-notifications';
/** More than this at a time share a notification. */
const MOST = 3;

class Desktop {
  #isChosen = $state(kept(CHOSEN) === 'on');
  #isSubscribed = $state(subscribed() !== null);
  #permission = $state(typeof Notification === 'undefined' ? null : Notification.permission);
  #isRefused = $state(false);
  /** Why there are no push messages, though they were asked for. */
  failure = $state<string | null>(null);

  get state(): DesktopState {
    if (!isSecureContext) return 'insecure';
    if (this.#permission === null) return 'unsupported';
    if (this.#permission === 'denied') return 'denied';
    if (!this.#isChosen || this.#permission !== 'granted') return this.#isRefused && !canPush() ? 'unsupported' : 'off';
    if (this.#isSubscribed) return 'push';
    return this.#isRefused ? 'unsupported' : 'on';
  }

  /** Asks the browser, which asks the person: only ever after a click. */
  async turnOn(): Promise<void> {
    if (this.#permission === null) return;
    this.#permission = await Notification.requestPermission();
    if (this.#permission !== 'granted') return;
    // A click may come before the service has said whether it sends push messages.
    if (!service.info) await service.load();
    this.#choose(true);
    this.failure = null;
    if (canPush()) {
      try {
        await subscribe();
        this.#isSubscribed = true;
      } catch (error) {
        // A page can still show them while it is open.
        this.failure = error instanceof DOMException ? error.message : failureOf(error).message;
      }
    }
    await this.#greet();
  }

  async turnOff(): Promise<void> {
    this.failure = null;
    try {
      if (this.#isSubscribed) await unsubscribe();
      this.#choose(false);
    } catch (error) {
      this.failure = failureOf(error).message;
    }
    this.#isSubscribed = subscribed() !== null;
  }

  /** Checks that the channel is among these, which the account has now. */
  async check(channels: readonly { id: string }[]): Promise<void> {
    const known = subscribed();
    if (!known || channels.some(({ id }) => id === known.channel)) return;
    this.#isSubscribed = await isStillThere();
    if (!this.#isSubscribed) this.#choose(false);
  }

  /** Announces new alerts, unless somebody looks at the page. */
  announce(fresh: readonly Alert[]): void {
    // By push they come as well, as far as the channel is for them.
    if (this.state !== 'on' || (!document.hidden && document.hasFocus())) return;
    if (fresh.length > MOST) {
      this.#show(m.many({ count: fresh.length }), '', 'many', '/alerts');
      return;
    }
    for (const alert of fresh) {
      const title = titleOf(alert, fleet.row(alert.server_id)?.server.name);
      this.#show(title, '', alert.id, `/alerts/${alert.id}`, alert.severity === 'critical');
    }
  }

  #choose(isOn: boolean): void {
    this.#isChosen = isOn;
    keep(CHOSEN, isOn ? 'on' : null);
  }

  /** Shows what a notification looks like. */
  async #greet(): Promise<void> {
    if (!this.#isSubscribed) return this.#show(m.testTitle(), m.testText(), 'test', '/account/notifications');
    const registration = await navigator.serviceWorker.ready;
    await registration.showNotification(m.testTitle(), {
      body: m.testText(),
      tag: 'test',
      icon: '/icon-192.png',
      badge: '/badge-96.png',
      data: { path: '/account/notifications' },
    });
  }

  #show(title: string, body: string, tag: string, address: string, stays = false): void {
    try {
      // Several tabs announce the same alert: the tag makes one of them.
      const shown = new Notification(title, { body, tag, icon: '/icon-192.png', requireInteraction: stays });
      shown.onclick = () => {
        window.focus();
        router.go(address);
        shown.close();
      };
    } catch {
      // Browsers of phones leave it to service workers.
      this.#isRefused = true;
    }
  }
}

export const desktop = new Desktop();

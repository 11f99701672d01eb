// Notifications of the browser, while a page of the interface is open. What a service worker shows later by push is to carry the
// same tag, the id of the alert: a browser then shows the two as one.
import * as m from '#messages/notices';
import type { Alert } from '../api/types';
import { messageOf } from '../lib/message';
import { router } from '../router/router.svelte';
import { keep, kept } from '../text/kept';

/**
 * `insecure`: browsers allow it on pages by HTTPS alone. `unsupported`: this one cannot. `denied`: somebody forbade it in the
 * browser, where alone it can be allowed again. `off` and `on`: as it was chosen here.
 */
export type DesktopState = 'insecure' | 'unsupported' | 'denied' | 'off' | 'on';

const CHOSEN = 'browser-notifications';
/** More than this at a time share a notification. */
const MOST = 3;

class Desktop {
  #isChosen = $state(kept(CHOSEN) === 'on');
  #permission = $state(typeof Notification === 'undefined' ? null : Notification.permission);
  #isRefused = $state(false);

  get state(): DesktopState {
    if (!isSecureContext) return 'insecure';
    if (this.#permission === null || this.#isRefused) return 'unsupported';
    if (this.#permission === 'denied') return 'denied';
    return this.#isChosen && this.#permission === 'granted' ? 'on' : 'off';
  }

  /** Asks the browser, which asks the person: only ever after a click. */
  async turnOn(): Promise<void> {
    if (this.#permission === null) return;
    this.#permission = await Notification.requestPermission();
    if (this.#permission !== 'granted') return;
    this.#choose(true);
    this.#show(m.testTitle(), m.testText(), 'test', '/account/notifications');
  }

  turnOff(): void {
    this.#choose(false);
  }

  /** Announces new alerts, unless somebody looks at the page. */
  announce(fresh: readonly Alert[]): void {
    if (this.state !== 'on' || (!document.hidden && document.hasFocus())) return;
    if (fresh.length > MOST) {
      this.#show(m.many({ count: fresh.length }), '', 'many', '/alerts');
      return;
    }
    for (const alert of fresh) {
      this.#show(messageOf(alert), '', alert.id, `/alerts/${alert.id}`, alert.severity === 'critical');
    }
  }

  #choose(isOn: boolean): void {
    this.#isChosen = isOn;
    keep(CHOSEN, isOn ? 'on' : null);
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

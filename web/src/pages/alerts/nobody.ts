import * as m from '#messages/thresholds';
import { api, takePage } from '../../api/client';
import { toasts } from '../../ui/toasts.svelte';

const SHOWN_MS = 15_000;

/** Says after a rule was saved that its alerts reach nobody, where no channel is set up. The rule itself is saved all the same. */
export async function tellIfNobody(): Promise<void> {
  const channels = await takePage(
    api.GET('/api/v1/notifications/channels', { params: { query: { limit: 100 } } }),
  ).catch(() => null);
  if (!channels || channels.items.some((channel) => channel.enabled)) return;
  toasts.add({
    kind: 'warning',
    icon: 'bell',
    text: m.nobody(),
    way: { text: m.addChannel(), href: '/account/notifications' },
    shownMs: SHOWN_MS,
  });
}

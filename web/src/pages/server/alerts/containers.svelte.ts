import { allContainers } from '../../../api/containers';
import { Loaded } from '../../../ui/form.svelte';
import type { ServerView } from '../view.svelte';

/** Events come in groups: a restart is a stop and a start. */
const SETTLE_MS = 700;

/** The containers of a server as they are now. */
export class PresentContainers {
  readonly #view: ServerView;
  readonly all;

  constructor(view: ServerView) {
    this.#view = view;
    this.all = new Loaded(() => allContainers(view.id));
  }

  /** Reads them again whenever one of them changed. Call what it gives when you are done. */
  follow(): () => void {
    if (this.#view.can('docker')) void this.all.load();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = $effect.root(() => {
      let known = this.#view.events.length;
      $effect(() => {
        const { events } = this.#view;
        const isNews = events.slice(known).some((event) => event.kind === 'container');
        known = events.length;
        if (!isNews) return;
        clearTimeout(timer);
        timer = setTimeout(() => void this.all.load(), SETTLE_MS);
      });
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }
}

/** What is wrong with a container, as thresholds call it. A restart loop cannot be seen at once. */
export function troubleOf(container: { state: string; status: string }): 'stopped' | 'unhealthy' | null {
  if (container.state === 'exited' || container.state === 'dead') return 'stopped';
  return container.status.includes('(unhealthy)') ? 'unhealthy' : null;
}

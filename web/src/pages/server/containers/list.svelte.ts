// The containers of a server as they are listed, and what is being done to them.
import { clock } from '../../../live/clock.svelte';
import { SvelteMap } from 'svelte/reactivity';
import { api, take } from '../../../api/client';
import { allContainers } from '../../../api/containers';
import type { Server } from '../../../api/types';
import { asksForSignatures, sendSigned } from '../../../signing/ask';
import { failureOf, type Failure } from '../../../api/failure';
import type { Container } from '../../../api/types';
import type { Verb } from './containers';

/** How often the page reads the list again without an event: the ages in it grow. */
const EVERY_MS = 10_000;
/** Several things happen at once when a container restarts: they are read together. */
const TOGETHER_MS = 250;
/** How long the row says what was done. */
const TOLD_MS = 6_000;

/** What is, or was, done to a container. */
export interface Deed {
  verb: Verb;
  state: 'busy' | 'done' | 'failed';
  since: number;
  failure: Failure | null;
}

export class ContainerList {
  containers = $state.raw<Container[] | null>(null);
  failure = $state.raw<Failure | null>(null);
  /** When the list was read. */
  readAt = $state<number | null>(null);
  readonly deeds = new SvelteMap<string, Deed>();

  readonly #serverId: string;
  readonly #server: () => Server;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isReading = false;
  #isWanted = false;
  /** How many things were done here. */
  #acts = 0;

  constructor(serverId: string, server: () => Server) {
    this.#serverId = serverId;
    this.#server = server;
  }

  /** Whether what is done to containers has to be signed. */
  get isSigned(): boolean {
    return asksForSignatures(this.#server(), 'docker_signed');
  }

  /** Keeps the list fresh while the page is seen, until what it gives is called. */
  keep(): () => void {
    const tick = () => {
      if (!document.hidden) void this.load();
    };
    const timer = setInterval(tick, EVERY_MS);
    document.addEventListener('visibilitychange', tick);
    void this.load();
    return () => {
      clearInterval(timer);
      clearTimeout(this.#timer);
      document.removeEventListener('visibilitychange', tick);
    };
  }

  /** Something happened to a container. */
  stir(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.load(), TOGETHER_MS);
  }

  async load(): Promise<void> {
    // What is asked for while an answer is awaited is asked for once after it.
    this.#isWanted = this.#isReading;
    if (this.#isReading) return;
    this.#isReading = true;
    const acts = this.#acts;
    try {
      const found = await allContainers(this.#serverId);
      this.failure = null;
      // A list from before something was done would take that back.
      if (acts === this.#acts) {
        this.containers = found;
        this.readAt = clock.present();
      } else this.#isWanted = true;
    } catch (error) {
      this.failure = failureOf(error);
    } finally {
      this.#isReading = false;
    }
    if (this.#isWanted) this.stir();
  }

  async act(container: Container, verb: Verb): Promise<void> {
    const { id, name } = container;
    const server = this.#server();
    if (this.deeds.get(id)?.state === 'busy') return;
    const deed: Deed = { verb, state: 'busy', since: clock.present(), failure: null };
    this.deeds.set(id, deed);
    try {
      const { isSigned } = this;
      // Who signs names the container as people do. Otherwise its id, which no other one can have.
      const path = { server_id: this.#serverId, container_id: isSigned ? name : id };
      const order = {
        deed: { kind: 'container', action: `${verb} ${name}` } as const,
        servers: [server],
      };
      const acted = await sendSigned(order, isSigned, (signed) =>
        take(
          api.POST(`/api/v1/docker/{server_id}/containers/{container_id}/${verb}`, {
            params: { path },
            ...(signed ? { body: { signed } } : {}),
          }),
        ),
      );
      if (!acted) return this.forget(id);
      // The list is older than the answer.
      this.#acts += 1;
      this.containers = (this.containers ?? []).map((one) => (one.id === id ? { ...one, state: acted.state } : one));
      const done: Deed = { ...deed, state: 'done' };
      this.deeds.set(id, done);
      setTimeout(() => this.#forget(id, done), TOLD_MS);
    } catch (error) {
      this.deeds.set(id, { ...deed, state: 'failed', failure: failureOf(error) });
    }
    await this.load();
  }

  forget(id: string): void {
    this.deeds.delete(id);
  }

  #forget(id: string, deed: Deed): void {
    if (this.deeds.get(id) === deed) this.deeds.delete(id);
  }
}

import { request } from 'node:http';

/** What `run` needs to make a container. */
interface Made {
  Id: string;
}

interface Inspected {
  State: { Status: string; StartedAt: string };
}

/** The real engine that `SIGNALBOX_TEST_DOCKER` names, with the image `busybox:test`. */
export class Docker {
  /** As the agent takes it: `unix:///...`. */
  readonly host: string;
  #made: string[] = [];

  constructor() {
    const host = process.env.SIGNALBOX_TEST_DOCKER;
    if (!host?.startsWith('unix://')) throw new Error('SIGNALBOX_TEST_DOCKER names no engine: see scripts/test-web');
    this.host = host;
  }

  /** Starts a container that runs until it is stopped, and ends at once on a stop signal. */
  async run(name: string, ...before: string[]): Promise<string> {
    const script = [...before, 'trap "exit 0" TERM', 'while :; do sleep 1000 & wait $!; done'].join('\n');
    const body = { Image: 'busybox:test', Cmd: ['sh', '-c', script], HostConfig: { NetworkMode: 'none' } };
    const { Id } = await this.#call<Made>('POST', `/containers/create?name=${encodeURIComponent(name)}`, body);
    this.#made.push(Id);
    await this.#call('POST', `/containers/${Id}/start`);
    return Id;
  }

  async startedAt(id: string): Promise<string> {
    return (await this.#call<Inspected>('GET', `/containers/${id}/json`)).State.StartedAt;
  }

  async state(id: string): Promise<string> {
    return (await this.#call<Inspected>('GET', `/containers/${id}/json`)).State.Status;
  }

  /** Makes a container write a line into its log. */
  async write(id: string, line: string): Promise<void> {
    const body = { Cmd: ['sh', '-c', 'printf "%s\\n" "$0" > /proc/1/fd/1', line] };
    const { Id } = await this.#call<Made>('POST', `/containers/${id}/exec`, body);
    await this.#call('POST', `/exec/${Id}/start`, { Detach: true });
  }

  /** Removes what was made here. */
  async clear(): Promise<void> {
    for (const id of this.#made.splice(0)) await this.#call('DELETE', `/containers/${id}?force=1`);
  }

  /** Podman looks at a running container's process, and fails where that has just ended, until it has noticed the end. */
  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#callOnce<T>(method, path, body);
      } catch (error) {
        if (method !== 'GET' || tries === 100 || !String(error).includes('no such process')) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  #callOnce<T>(method: string, path: string, body?: unknown): Promise<T> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = text === undefined ? {} : { 'Content-Type': 'application/json' };
    return new Promise((resolve, reject) => {
      const socketPath = this.host.slice('unix://'.length);
      const sent = request({ socketPath, path, method, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () => {
          const said = Buffer.concat(parts).toString();
          if ((response.statusCode ?? 500) >= 400) reject(new Error(`${method} ${path}: ${said}`));
          else resolve((said.startsWith('{') ? JSON.parse(said) : {}) as T);
        });
      });
      sent.on('error', reject);
      sent.end(text);
    });
  }
}

import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { startFront, type Front } from './front.ts';
import { Program } from './process.ts';

export interface Account {
  username: string;
  email: string;
  password: string;
  token: string;
}

export interface ManagedServer {
  id: string;
  name: string;
  key: string;
}

export const PASSWORD = 'correct horse battery';

/** The real service on a free port with a new database, and the real agents of its servers. */
export class Site {
  readonly directory = mkdtempSync(join(tmpdir(), 'signalbox-web-'));
  #service: Program | null = null;
  #front: Front | null = null;
  #agents = new Map<string, Program>();
  #accounts = 0;
  /** State directories that were made before their agents, by key. */
  #states = new Map<string, string>();
  /** Directories that are `/var/log` for an agent, by key. */
  #systemLogs = new Map<string, string>();
  readonly #flags: string[];
  /** Who administers it: its first account, where a test has kept it. */
  admin: Account | null = null;
  /** Where the service listens. */
  address = '';

  constructor(flags: string[] = []) {
    this.#flags = flags;
  }

  /** With more flags of `serve`. */
  static async start(listen = '127.0.0.1:0', ...flags: string[]): Promise<Site> {
    const site = new Site(flags);
    await site.#serve(listen);
    const front = process.env.SIGNALBOX_WEB_FRONT;
    if (front) site.#front = await startFront(front, site.address);
    return site;
  }

  /** Where the interface is: at the service, unless something stands before it. */
  get origin(): string {
    return this.#front?.address ?? this.address;
  }

  get data(): string {
    return join(this.directory, 'data');
  }

  async #serve(listen: string): Promise<void> {
    const args = ['serve', '--listen', listen, '--data-dir', this.data, '--log', 'warn'];
    // Debug builds, which tests use, may hash passwords cheaply.
    args.push('--password-iterations', '1000');
    this.#service = new Program('signalbox', [...args, ...this.#flags], join(this.directory, 'service.log'));
    this.address = await this.#service.says('listening on ');
  }

  /** What the service has written to its log. */
  log(): string {
    return readFileSync(join(this.directory, 'service.log'), 'utf8');
  }

  /** The code that the first account may need. */
  setupCode(): string | undefined {
    return /setup code (\S+)/.exec(this.log())?.[1];
  }

  /** Ends the service; `signal` says how. */
  async stopService(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#front) this.#front.isAway = true;
    await this.#service?.end(signal);
  }

  /** Starts it again where it was. */
  async startService(): Promise<void> {
    await this.#serve(new URL(this.address).host);
    if (this.#front) this.#front.isAway = false;
  }

  async stop(): Promise<void> {
    for (const agent of this.#agents.values()) await agent.end();
    await this.#front?.close();
    await this.stopService();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** An answer of the API that succeeded. */
  async call<T>(method: string, path: string, token?: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.address}/api/v1${path}`, {
      method,
      headers: {
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** A name that nobody else has on this site. */
  unique(word: string): string {
    this.#accounts += 1;
    return `${word}-${this.#accounts}`;
  }

  async account(): Promise<Account> {
    const username = this.unique('ada');
    const email = `${username}@example.com`;
    const made = await this.call<{ access_token: string }>('POST', '/auth/register', undefined, {
      username,
      email,
      full_name: 'Ada Lovelace',
      password: PASSWORD,
      password_confirm: PASSWORD,
      setup_code: this.setupCode(),
    });
    return { username, email, password: PASSWORD, token: made.access_token };
  }

  /** A server with a key, and no agent yet. */
  async server(account: Account, name = this.unique('web'), tags: string[] = []): Promise<ManagedServer> {
    const body = { name, host: '127.0.0.1', tags };
    const { id } = await this.call<{ id: string }>('POST', '/servers', account.token, body);
    const { key } = await this.call<{ key: string }>('POST', '/api-keys', account.token, { server_id: id, name });
    return { id, name, key };
  }

  /** Starts the agent of a server with what its owner allows, and waits until it is connected. */
  async agent(account: Account, server: ManagedServer, ...policy: string[]): Promise<Program> {
    const agent = this.startAgent(server.key, ...policy);
    await this.until(async () => {
      const { status } = await this.call<{ status: string }>('GET', `/servers/${server.id}`, account.token);
      return status === 'online';
    }, 'the agent is connected');
    return agent;
  }

  /** Starts an agent with a key. */
  startAgent(key: string, ...policy: string[]): Program {
    const name = this.unique('agent');
    const keyFile = join(this.directory, `${name}.key`);
    writeFileSync(keyFile, key, { mode: 0o600 });
    const state = this.#states.get(key) ?? join(this.directory, name);
    // Of the machine that the tests run on nothing is read but what a test asks for.
    const docker = policy.includes('--docker') || policy.includes('--policy') ? [] : ['--docker', 'off'];
    const interval = policy.includes('--interval') ? [] : ['--interval', '1'];
    const args = ['--url', this.address, '--key-file', keyFile, '--state-dir', state, ...interval, ...docker];
    const log = this.#systemLogs.get(key);
    // In a mount namespace of its own, which ends with it. The program stays the same process.
    const around = log ? ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /var/log && exec "$@"', log] : [];
    const agent = new Program('signalbox-agent', [...args, ...policy], join(this.directory, `${name}.log`), around);
    this.#agents.set(name, agent);
    return agent;
  }

  /**
   * Starts the agent of a server that asks for signatures, as its policy names it. The files are root's: so are the tests.
   * `lines` are more of the policy.
   */
  async signedAgent(account: Account, server: ManagedServer, name: string, signers: string, ...lines: string[]) {
    const directory = join(this.directory, `policy-of-${server.id}`);
    mkdirSync(directory);
    const file = join(directory, 'allowed_signers');
    writeFileSync(file, signers);
    const said = ['commands', 'terminal', 'docker'].map((key) => `${key} = "signed"`);
    const policy = [...said, `name = "${name}"`, `signers = "${file}"`, ...lines, ''].join('\n');
    writeFileSync(join(directory, 'policy.toml'), policy);
    return this.agent(account, server, '--policy', join(directory, 'policy.toml'));
  }

  /**
   * Lets the agent with a key, which starts later, find a log of the system with these lines, in which each line begins with the
   * present time. Returns what writes another one. The tests are root's, who may say what `/var/log` is for a program.
   */
  keepsSystemLog(key: string, ...lines: string[]): (line: string) => void {
    const directory = join(this.directory, this.unique('var-log'));
    mkdirSync(directory);
    const write = (line: string) =>
      appendFileSync(join(directory, 'syslog'), `${new Date().toISOString()} bastion ${line}\n`);
    for (const line of lines) write(line);
    this.#systemLogs.set(key, directory);
    return write;
  }

  /** The state directory of an agent that begins with something in it. */
  stateOf(server: ManagedServer): string {
    return join(this.directory, `state-of-${server.id}`);
  }

  /**
   * Lets the agent of a server, which starts later, begin as one that has kept its record of signatures for a while: a new one
   * refuses for a minute what holds from a minute ago on.
   */
  keepsNoncesSince(server: ManagedServer, time: number): void {
    const state = this.stateOf(server);
    this.#states.set(server.key, state);
    mkdirSync(state, { mode: 0o700 });
    const header = `signalbox-nonces 1 ${time} 0`;
    const checksum = crc32(header).toString(16).padStart(8, '0');
    writeFileSync(join(state, 'signed-nonces'), `${checksum} ${header}\n`, { mode: 0o600 });
  }

  /**
   * Lets the agent of a server, which starts later, begin with recordings, by their ids: it ends them as those that it left when
   * it was killed.
   */
  keepsRecordings(server: ManagedServer, recordings: Record<string, string>): void {
    const state = this.stateOf(server);
    this.#states.set(server.key, state);
    mkdirSync(join(state, 'recordings'), { mode: 0o700, recursive: true });
    for (const [id, file] of Object.entries(recordings))
      writeFileSync(join(state, 'recordings', `${id}.cast`), file, { mode: 0o600 });
  }

  /** Waits for something that the page does not show. */
  async until(holds: () => Promise<boolean>, what: string): Promise<void> {
    const deadline = Date.now() + 60_000;
    while (!(await holds())) {
      if (Date.now() > deadline) throw new Error(`waited a minute without success: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

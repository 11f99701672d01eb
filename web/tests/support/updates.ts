// Releases of the agent, and agents that take them.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { programs } from './process.ts';
import type { Account, ManagedServer, Site } from './site.ts';

/** This machine's build of the agent, as the service names it. */
export const PROGRAM = `signalbox-agent-linux-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
/** Newer than anything that runs. */
export const VERSION = '99.0.0';

export interface Releases {
  /** The public key that signs them. */
  key: string;
  /** Makes the service offer a release, in place of the one before. */
  offer(version?: string): void;
  /** Puts another program in the place of the release's. */
  spoilProgram(): void;
}

/** The releases of a directory of agents. Their one build is the agent that the tests use, whatever their version. */
export function releasesIn(directory: string, keys: string): Releases {
  mkdirSync(keys);
  const key = join(keys, 'release');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const [program, release] = [join(directory, PROGRAM), join(directory, 'agent-release.json')];
  return {
    key: readFileSync(`${key}.pub`, 'utf8').trim(),
    offer: (version = VERSION) => {
      copyFileSync(join(programs, 'signalbox-agent'), program);
      const build = readFileSync(program);
      const sha256 = createHash('sha256').update(build).digest('hex');
      const named = { [PROGRAM]: { bytes: build.length, sha256 } };
      rmSync(`${release}.sig`, { force: true });
      writeFileSync(release, JSON.stringify({ v: 1, version, programs: named }));
      execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', key, '-n', 'signalbox-agent-release-v1', release], {
        stdio: 'ignore',
      });
    },
    spoilProgram: () => writeFileSync(program, 'another one'),
  };
}

/** Starts the real agent of a server that takes releases with the signature of a key. */
export async function startUpdatable(site: Site, account: Account, server: ManagedServer, key: string): Promise<void> {
  const directory = join(site.directory, `policy-of-${server.id}`);
  mkdirSync(directory);
  const [signers, policy] = [join(directory, 'release_signers'), join(directory, 'policy.toml')];
  writeFileSync(signers, `release ${key}\n`);
  writeFileSync(policy, `updates = "signed"\nrelease_signers = "${signers}"\n`);
  await site.agent(account, server, '--policy', policy);
}

/** How an agent that a test makes up answers an offer. */
export interface Behaviour {
  version?: string;
  /** Refuses with this code. */
  refuses?: string;
  /** Tries the release, and comes back with the version before, and with this reason. */
  fails?: string;
  /** Comes back at once with this failure of an earlier release. */
  failed?: { version: string; reason: string };
}

/** Agents in a page of their own: real ones do not fail on demand. Those without a behaviour take a release and run it. */
export async function startMadeUp(page: Page, site: Site, keys: [key: string, behaviour: Behaviour][]): Promise<void> {
  await page.goto(`${site.origin}/healthz`);
  await page.evaluate(async (keys) => {
    type Failure = { version: string; reason: string } | undefined;
    const start = async (key: string, behaviour: Behaviour, version: string, failed: Failure): Promise<void> => {
      const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/v1/agents/ws`);
      await new Promise((opened, lost) => {
        socket.onopen = opened;
        socket.onerror = lost;
      });
      const send = (type: string, data: unknown) => socket.send(JSON.stringify({ type, data }));
      const host = { hostname: 'made-up', os: 'Debian', kernel: '6.1', arch: 'x86_64', cpu_count: 2, boot_id: 'b' };
      const capabilities = ['metrics', 'updates'];
      const agent = { ...host, version, machine_id: '', capabilities, ...(failed ? { failed_update: failed } : {}) };
      send('auth', { api_key: key, protocol: 1, sample_interval_seconds: 5, agent });
      await new Promise((answered) => (socket.onmessage = answered));
      socket.onmessage = ({ data }) => {
        const { type, data: asked } = JSON.parse(String(data)) as {
          type: string;
          data: { request_id: string; method: string; params: { release: string } };
        };
        if (type !== 'request' || asked.method !== 'agent.update') return;
        const { request_id } = asked;
        const { refuses: reason, fails } = behaviour;
        if (reason) {
          const error = { code: 'agent_refused', detail: 'refused by the policy', reason };
          return send('response', { request_id, ok: false, error });
        }
        const release = JSON.parse(atob(asked.params.release)) as { version: string };
        send('response', { request_id, ok: true, result: { version: release.version } });
        socket.close();
        const next = fails ? version : release.version;
        void start(key, behaviour, next, fails ? { version: release.version, reason: fails } : undefined);
      };
    };
    for (const [key, behaviour] of keys) await start(key, behaviour, behaviour.version ?? '1.3.0', behaviour.failed);
  }, keys);
}

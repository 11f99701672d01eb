// Keys that sign, as people have them, and commands that wait for signatures.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Account, ManagedServer, Site } from './site.ts';
import * as t from './texts.ts';

/** Makes a passkey that signs, as a person does on the page of their account, and returns its line. */
export async function makeKey(page: Page): Promise<string> {
  await page.getByRole('button', { name: t.signing.makeKey() }).click();
  const dialog = page.getByRole('dialog', { name: t.signing.makeKey() });
  await dialog.getByRole('button', { name: t.signing.make() }).click();
  const line = await dialog.getByLabel(t.signing.keyLine()).innerText();
  await dialog.getByRole('button', { name: t.signing.done() }).click();
  return line;
}

/** A payload holds for 24 hours at most. What waits for signatures is made once for all tests of a worker, and outlasts them. */
const HOLDS_MS = 23 * 3_600_000;

export interface SshKey {
  /** Of the file of signers. */
  line: string;
  /** What is in its file of the public key. */
  pub: string;
  /** `SHA256:...` */
  fingerprint: string;
  /** Signs a payload: the text of the signature. */
  sign: (payload: string) => string;
}

/** A key of OpenSSH. */
export function sshKey(site: Site, name: string): SshKey {
  const directory = join(site.directory, site.unique('keys'));
  mkdirSync(directory);
  const file = join(directory, name);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  const pub = readFileSync(`${file}.pub`, 'utf8').trim();
  const sign = (payload: string) => {
    const signed = join(directory, 'payload.json');
    writeFileSync(signed, payload);
    execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', file, '-n', 'signalbox-command-v1', signed], {
      stdio: 'ignore',
    });
    const signature = readFileSync(`${signed}.sig`, 'utf8');
    rmSync(`${signed}.sig`);
    return signature;
  };
  const [, fingerprint = ''] = execFileSync('ssh-keygen', ['-lf', `${file}.pub`], { encoding: 'utf8' }).split(' ');
  return { line: `${name}@example.org ${pub}`, pub, fingerprint, sign };
}

/** A server with some signers. It asks for all of them. */
export async function serverWith(site: Site, account: Account, name: string, lines: string[]): Promise<ManagedServer> {
  const server = await site.server(account, name);
  site.keepsNoncesSince(server, Date.now() - 3_600_000);
  await site.signedAgent(account, server, name, `${lines.join('\n')}\n`, `approvals = ${lines.length}`);
  return server;
}

/** Asks for the signatures of others of a command on a server, signed with one key; returns the id and the payload. */
export async function askForMore(
  site: Site,
  account: Account,
  server: ManagedServer,
  key: SshKey,
  { command = 'echo $((40 + 2))', holdsMs = HOLDS_MS } = {},
): Promise<{ id: string; payload: string }> {
  const payload = JSON.stringify({
    v: 1,
    servers: [server.name],
    kind: 'command',
    command,
    timeout_seconds: 60,
    not_before: new Date(Date.now() - 60_000).toISOString(),
    expires_at: new Date(Date.now() + holdsMs).toISOString(),
    nonce: randomBytes(16).toString('hex'),
  });
  const signed = {
    payload: Buffer.from(payload).toString('base64'),
    signatures: [{ type: 'sshsig', signature: key.sign(payload) }],
  };
  const body = { command, server_ids: [server.id], signed };
  const { id } = await site.call<{ id: string }>('POST', '/commands/approvals', account.token, body);
  return { id, payload };
}

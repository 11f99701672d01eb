// @vitest-environment node
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fingerprintOf, readSshKey, sshSignerLine } from './signer';

let directory = '';
let files: string[] = [];
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'signer-'));
  files = [make('ed25519'), make('ecdsa', '-b', '384'), make('rsa', '-b', '2048')];
});
afterAll(() => rmSync(directory, { recursive: true }));

function make(type: string, ...more: string[]): string {
  const file = join(directory, type);
  execFileSync('ssh-keygen', ['-q', '-t', type, ...more, '-N', '', '-C', 'ada at home', '-f', file]);
  return file;
}

describe('the line of an SSH key', () => {
  it('has its owner and the key that ssh-keygen made, with the fingerprint that it shows', async () => {
    expect(files.length).toBe(3);
    for (const file of files) {
      const text = readFileSync(`${file}.pub`, 'utf8');
      const key = readSshKey(text);
      if (!key) throw new Error(`${text} is no key`);

      expect(sshSignerLine('ada@example.org', key)).toBe(`ada@example.org ${text.split(' ').slice(0, 2).join(' ')}`);
      const told = execFileSync('ssh-keygen', ['-l', '-f', `${file}.pub`], { encoding: 'utf8' });
      expect(told).toContain(await fingerprintOf(key));
    }
  });

  it('is made of nothing else: no private key, no other kind, no key under a wrong name', () => {
    const file = files[0] ?? '';
    const line = readFileSync(`${file}.pub`, 'utf8');
    const wrong = [
      '',
      'ssh-ed25519',
      readFileSync(file, 'utf8'),
      line.replace('ssh-ed25519', 'ssh-rsa'),
      line.replace('ssh-ed25519', 'ssh-dss'),
      `cert-authority ${line}`,
      `${line}${line}`,
      'ssh-ed25519 not=base64',
      'ssh-ed25519 AAAA',
    ];
    expect(wrong.map(readSshKey)).toEqual(wrong.map(() => null));
  });
});

import { describe, expect, it } from 'vitest';
import { allowsNothingToSign, CAREFUL, EVERYTHING, installLine, signedLine, updatesLine } from './install';
import { readSigners, signersOptions, updatesOptions } from './signers';

const SERVICE = 'https://box.example.com';
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5bMbWwsEjJDuV8EaYCVVHwSLfLFiLUxFHe5AlBFSJV';
const PASSKEY = `sk-webauthn ${'A'.repeat(103)} box.example.com`;

const faultOf = (text: string) => readSigners(text, SERVICE).fault;

describe('signers for an install line', () => {
  it('are keys with a name and addresses of others, one a line', () => {
    const lines = [
      `${KEY} ada@example.org`,
      `ben=${KEY}`,
      `cyd ${KEY}`,
      `dan ${PASSKEY}`,
      `eli=${PASSKEY}`,
      'https://example.org/ops.keys',
      'fay=https://github.com/fay.keys',
    ];
    expect(readSigners(`# ours\n\n${lines.join('\r\n')}\n`, SERVICE)).toEqual({ values: lines, fault: null });
  });

  it.each([
    [`\n${KEY}`, 'unnamed'],
    [`\n${KEY} two words`, 'unnamed'],
    [`\n${PASSKEY}`, 'unnamed'],
    ['\n-----BEGIN OPENSSH PRIVATE KEY-----', 'private'],
    ['\nhttp://example.org/ops.keys', 'insecure'],
    ['\nhttps://ada@example.org/keys', 'address'],
    ['\nhttps://example.org/$(id)', 'address'],
    ['\nhttps://BOX.example.com./ops.keys', 'own'],
    ['\nada=https://box.example.com:8443/ops.keys', 'own'],
    ['\n~/.ssh/id_ed25519.pub', 'form'],
    ['\nssh-ed25519 AAAA ada', 'form'],
    [`\nada sk-webauthn short box.example.com`, 'form'],
    [`\nada=${KEY} \u202edne`, 'form'],
    [`\n${KEY} ad\u200ba`, 'form'],
    [`\n${KEY} jürgen`, 'form'],
    [`\n${KEY} \x1b[2Kada`, 'form'],
    [`\n${KEY} ada$(id)`, 'unnamed'],
    [`\nada:x ${KEY}`, 'form'],
  ])('%s is refused', (text, kind) => {
    expect(faultOf(text)).toEqual({ line: 2, kind });
  });

  it('are words that no shell reads as more', () => {
    expect(signersOptions([`${KEY} ada`, 'https://example.org/k?a=1&b=2'])).toEqual([
      `--signers '${KEY} ada'`,
      "--signers 'https://example.org/k?a=1&b=2'",
    ]);
  });
});

describe('the install line with signers', () => {
  const value = 'ada=https://github.com/ada.keys';

  it('asks for signatures in place of what was allowed', () => {
    expect(installLine(SERVICE, 'k', CAREFUL, [value])).toBe(
      `curl -fsSL ${SERVICE}/install.sh | sudo sh -s -- --key k --commands signed --docker read --signers ${value}`,
    );
    const all = installLine(SERVICE, 'k', EVERYTHING, [value]);
    expect(all).toContain('--commands signed --terminal signed --docker signed --logs on --signers ');
    const terminal = installLine(SERVICE, 'k', { ...CAREFUL, terminal: true }, [value]);
    expect(terminal).toContain('--key k --terminal signed --docker read --signers ');
  });

  it('has no key for an agent that is there', () => {
    const line = (...capabilities: string[]) => signedLine(SERVICE, [value], ['metrics', 'docker', ...capabilities]);
    const start = `curl -fsSL ${SERVICE}/install.sh | sudo sh -s --`;
    expect(line()).toBe(`${start} --commands signed --signers ${value}`);
    expect(line('commands', 'commands_signed')).toBe(`${start} --signers ${value}`);
  });

  it('asks for signatures of all that an agent allows without one', () => {
    const open = (...capabilities: string[]) =>
      signedLine(SERVICE, [value], capabilities)
        .replace(/.*sh -s -- /, '')
        .replace(/ ?--signers.*/, '');
    expect(open('commands')).toBe('--commands signed');
    expect(open('commands', 'terminal', 'docker', 'docker_control')).toBe(
      '--commands signed --terminal signed --docker signed',
    );
    expect(open('terminal')).toBe('--terminal signed');
    expect(open('commands', 'commands_signed', 'docker_control')).toBe('--docker signed');
    expect(open('terminal', 'terminal_signed', 'docker_control', 'docker_signed')).toBe('');
  });

  it('adds commands only where nothing else could need a signature', () => {
    expect(allowsNothingToSign(CAREFUL)).toBe(true);
    for (const policy of [{ commands: true }, { terminal: true }, { docker: 'control' as const }])
      expect(allowsNothingToSign({ ...CAREFUL, ...policy })).toBe(false);
    const docker = installLine(SERVICE, 'k', { ...CAREFUL, docker: 'control' }, [value]);
    expect(docker).toContain('--key k --docker signed --signers ');
  });
});

describe('signers of releases', () => {
  it('are SSH keys and addresses, and no passkeys', () => {
    const values = [`${KEY} ada@example.org`, `ben=${KEY}`, 'fay=https://github.com/fay.keys'];
    expect(readSigners(values.join('\n'), SERVICE, 'releases')).toEqual({ values, fault: null });

    for (const passkey of [`dan ${PASSKEY}`, `eli=${PASSKEY}`])
      expect(readSigners(`\n${passkey}`, SERVICE, 'releases').fault).toEqual({ line: 2, kind: 'passkey' });
    expect(readSigners('http://example.org/k', SERVICE, 'releases').fault?.kind).toBe('insecure');
  });

  it('turn updates on in a line, which has none of it without them', () => {
    const value = `${KEY} ada@example.org`;
    const named = `--updates signed --release-signers '${value}' --release-signers fay=https://github.com/fay.keys`;
    const values = [value, 'fay=https://github.com/fay.keys'];

    expect(updatesOptions([])).toEqual([]);
    expect(updatesLine(SERVICE, values)).toBe(`curl -fsSL ${SERVICE}/install.sh | sudo sh -s -- ${named}`);
    expect(installLine(SERVICE, 'k', CAREFUL, [], values)).toBe(
      `curl -fsSL ${SERVICE}/install.sh | sudo sh -s -- --key k ${named}`,
    );
    expect(installLine(SERVICE, 'k', CAREFUL)).not.toContain('--updates');
  });
});

// The line that installs the agent on a server. What it allows is written into it, and from there into a file that only the
// server's own administrator can change.

import { signersOptions, updatesOptions } from './signers';

export interface Policy {
  commands: boolean;
  terminal: boolean;
  logs: boolean;
  docker: 'off' | 'read' | 'control';
  processes: boolean;
}

/** What an agent may do unless its owner says otherwise: look, and touch nothing. */
export const CAREFUL: Policy = { commands: false, terminal: false, logs: false, docker: 'read', processes: true };

/** All that there is to allow. */
export const EVERYTHING: Policy = { commands: true, terminal: true, logs: true, docker: 'control', processes: true };

/**
 * The options that differ from what the script does by itself. With commands or a terminal it allows no containers. With signers,
 * what is allowed needs a signature; something has to.
 */
export function options(policy: Policy, signers: readonly string[] = []): string[] {
  const isSigned = signers.length > 0;
  const on = isSigned ? 'signed' : 'on';
  const docker = isSigned && policy.docker === 'control' ? 'signed' : policy.docker;
  const commands = policy.commands || (isSigned && allowsNothingToSign(policy));
  const namesDocker = commands || policy.terminal || docker !== CAREFUL.docker;
  const differs: [boolean, string][] = [
    [commands, `--commands ${on}`],
    [policy.terminal, `--terminal ${on}`],
    [namesDocker, `--docker ${docker}`],
    [policy.logs, '--logs on'],
    [!policy.processes, '--processes off'],
  ];
  return [...differs.filter(([is]) => is).map(([, option]) => option), ...signersOptions(signers)];
}

/** Whether nothing that a policy allows could need a signature: with signers, commands do then, although it leaves them off. */
export function allowsNothingToSign(policy: Policy): boolean {
  return !policy.commands && !policy.terminal && policy.docker !== 'control';
}

/** A word that any shell takes as it is. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Downloads the script from the service itself, and runs it. Without TLS there is nothing to demand of it. */
export function installLine(
  service: string,
  key: string,
  policy: Policy,
  signers: readonly string[] = [],
  releaseSigners: readonly string[] = [],
): string {
  const asked = [...options(policy, signers), ...updatesOptions(releaseSigners)];
  return [script(service), `--key ${quoted(key)}`, ...asked].join(' ');
}

/** What root does on a server in place of running install.sh, so that its agent takes updates. */
export const UPDATES_BY_HAND = {
  signersFile: '/etc/signalbox-agent/release_signers',
  policyLine: 'updates = "signed"',
  restart: ['sudo', 'systemctl', 'restart', 'signalbox-agent'].join(' '),
};

/** The line with which the agent of a server takes updates that one of them has signed. */
export function updatesLine(service: string, signers: readonly string[]): string {
  return [script(service), ...updatesOptions(signers)].join(' ');
}

/** What can need a signature: the agent's word where it is allowed, the one where it needs one, and the option that asks for it. */
const SIGNABLE = [
  ['commands', 'commands_signed', '--commands signed'],
  ['terminal', 'terminal_signed', '--terminal signed'],
  ['docker_control', 'docker_signed', '--docker signed'],
] as const;

/**
 * The line that names signers on a server that has an agent. What its capabilities allow without a signature needs one from then on:
 * a terminal that stayed open would be a way around them. Where nothing of that is allowed, commands are, with signatures.
 */
export function signedLine(service: string, signers: readonly string[], capabilities: readonly string[]): string {
  const has = (word: string) => capabilities.includes(word);
  const open = SIGNABLE.filter(([allowed, signed]) => has(allowed) && !has(signed)).map(([, , option]) => option);
  const isSigned = SIGNABLE.some(([, signed]) => has(signed));
  const asked = open.length > 0 || isSigned ? open : ['--commands signed'];
  return [script(service), ...asked, ...signersOptions(signers)].join(' ');
}

function script(service: string): string {
  return `curl -fsSL ${quoted(`${base(service)}/install.sh`)} | sudo sh -s --`;
}

/** The same by hand, for who has the program already. */
export function manualLine(service: string, policy: Policy): string {
  return [`signalbox-agent --url ${quoted(base(service))} --key-file key.txt`, ...options(policy)].join(' ');
}

function base(service: string): string {
  return service.replace(/\/+$/, '');
}

/** What a host may be called, made of what a person called the server: `Web 1 (Berlin)` becomes `web-1-berlin`. */
export function hostOf(name: string): string {
  const host = name
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^a-z0-9.-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 63)
    .replace(/[-.]+$/, '');
  return host || 'unnamed';
}

// What an agent's owner allows, in words. The words of `capabilities` are the agent's.
import * as m from '#messages/settings';
import type { SignedCapability } from '../../../signing/ask';

export interface Allowed {
  label: string;
  allowed: boolean;
  /** What that means. */
  text: string;
  /** How the owner would allow it. */
  option: string;
  /** It runs with the signature of an operator alone. */
  signed: boolean;
}

/** What runs with signatures alone, by the agent's words. */
const SIGNED: Record<string, SignedCapability> = {
  commands: 'commands_signed',
  terminal: 'terminal_signed',
  docker_control: 'docker_signed',
};

/** What needs a signature on a server, in words. */
export function signedOnes(capabilities: string[]): string[] {
  return allowed(capabilities)
    .filter((one) => one.signed)
    .map((one) => one.label);
}

export function allowed(capabilities: string[]): Allowed[] {
  const has = (name: string) => capabilities.includes(name);
  const told = (name: string) => ({ allowed: has(name), signed: capabilities.includes(SIGNED[name] ?? '') });
  return [
    { label: m.metrics(), ...told('metrics'), text: m.metricsText(), option: m.alwaysOn() },
    {
      label: m.processes(),
      ...told('processes'),
      text: m.processesText(),
      option: 'processes = "on"',
    },
    {
      label: m.seeContainers(),
      ...told('docker'),
      text: m.seeContainersText(),
      option: 'docker = "read"',
    },
    {
      label: m.controlContainers(),
      ...told('docker_control'),
      text: m.controlContainersText(),
      option: 'docker = "control"',
    },
    {
      label: m.readLogs(),
      ...told('logs'),
      text: m.readLogsText(),
      option: 'logs = "on"',
    },
    {
      label: m.runCommands(),
      ...told('commands'),
      text: m.runCommandsText(),
      option: 'commands = "on"',
    },
    {
      label: m.terminal(),
      ...told('terminal'),
      text: m.terminalText(),
      option: 'terminal = "on"',
    },
    {
      label: m.takeUpdates(),
      ...told('updates'),
      text: m.takeUpdatesText(),
      option: 'updates = "signed"',
    },
  ];
}

/** A clock that is further off than this makes times hard to compare. */
export const NOTABLE_CLOCK_OFFSET_MS = 5_000;

// What an agent's owner allows, in words. The words of `capabilities` are the agent's.
import * as m from '#messages/settings';

export interface Allowed {
  label: string;
  allowed: boolean;
  /** What that means. */
  text: string;
  /** How the owner would allow it. */
  option: string;
}

export function allowed(capabilities: string[]): Allowed[] {
  const has = (name: string) => capabilities.includes(name);
  return [
    { label: m.metrics(), allowed: has('metrics'), text: m.metricsText(), option: m.alwaysOn() },
    {
      label: m.processes(),
      allowed: has('processes'),
      text: m.processesText(),
      option: 'processes = "on"',
    },
    {
      label: m.seeContainers(),
      allowed: has('docker'),
      text: m.seeContainersText(),
      option: 'docker = "read"',
    },
    {
      label: m.controlContainers(),
      allowed: has('docker_control'),
      text: m.controlContainersText(),
      option: 'docker = "control"',
    },
    {
      label: m.readLogs(),
      allowed: has('logs'),
      text: m.readLogsText(),
      option: 'logs = "on"',
    },
    {
      label: m.runCommands(),
      allowed: has('commands'),
      text: m.runCommandsText(),
      option: 'commands = "on"',
    },
    {
      label: m.terminal(),
      allowed: has('terminal'),
      text: m.terminalText(),
      option: 'terminal = "on"',
    },
  ];
}

/** A clock that is further off than this makes times hard to compare. */
export const NOTABLE_CLOCK_OFFSET_MS = 5_000;

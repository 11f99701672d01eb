// What an agent's owner allows, in words. The words of `capabilities` are the agent's.

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
    { label: 'Metrics', allowed: has('metrics'), text: 'Sends what the machine measures.', option: 'always on' },
    {
      label: 'Top processes',
      allowed: has('processes'),
      text: 'Tells which programs use the most, without their arguments.',
      option: 'processes = "on"',
    },
    {
      label: 'See containers',
      allowed: has('docker'),
      text: 'Lists containers and reads their logs.',
      option: 'docker = "read"',
    },
    {
      label: 'Control containers',
      allowed: has('docker_control'),
      text: 'Starts, stops, restarts and pauses containers.',
      option: 'docker = "control"',
    },
    {
      label: 'Read logs',
      allowed: has('logs'),
      text: 'Reads the system log and the files that the owner named.',
      option: 'logs = "on"',
    },
    {
      label: 'Run commands',
      allowed: has('commands'),
      text: "Runs shell commands as the agent's user.",
      option: 'commands = "on"',
    },
    {
      label: 'Terminal',
      allowed: has('terminal'),
      text: "Opens a shell as the agent's user.",
      option: 'terminal = "on"',
    },
  ];
}

/** A clock that is further off than this makes times hard to compare. */
export const NOTABLE_CLOCK_OFFSET_MS = 5_000;

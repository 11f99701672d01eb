// What is pasted on a server so that its agent allows something: for an agent that install.sh put there, for one that was
// started by hand, and for one in a container. Pure.
import { quoted } from './install';

/** What an agent may be allowed to do, by the names of its capabilities. */
export type Right = 'commands' | 'terminal' | 'logs' | 'docker' | 'docker_control' | 'processes';

/** The key of the policy, and the value that allows it. */
const WANTED: Record<Right, [key: string, value: string]> = {
  commands: ['commands', 'on'],
  terminal: ['terminal', 'on'],
  logs: ['logs', 'on'],
  docker: ['docker', 'read'],
  docker_control: ['docker', 'control'],
  processes: ['processes', 'on'],
};

export interface Ways {
  /** The line for an installed agent; null where install.sh does not take the path. */
  installed: string | null;
  /** Options of the program. */
  options: string;
  /** Lines of the policy file. */
  file: string;
  /** Lines of the environment in a compose file; null where a variable does not take the path. */
  compose: string | null;
}

/** How a right is given, and a file among the logs that may be read. */
export function waysTo(service: string, right: Right, path: string | null = null): Ways {
  const [key, value] = WANTED[right];
  const option = `--${key} ${value}`;
  // What install.sh takes as it is: anything else could be more than a path in the files that it writes.
  const isPlain = path === null || /^\/[A-Za-z0-9._/@:+,=~-]*$/.test(path);
  // In the variable colons separate paths.
  const hasVariable = path === null || !path.includes(':');
  const script = quoted(`${service.replace(/\/+$/, '')}/install.sh`);
  const files = path === null ? '' : ` --log-path ${quoted(path)}`;
  // Unquoted, YAML reads `on` as true.
  const variables = [`SIGNALBOX_AGENT_${key.toUpperCase()}: "${value}"`];
  if (path !== null) variables.push(`SIGNALBOX_AGENT_LOG_PATH: ${JSON.stringify(path)}`);
  const lines = [`${key} = "${value}"`];
  if (path !== null) lines.push(`log_paths = [${JSON.stringify(path)}]`);
  return {
    installed: isPlain ? `curl -fsSL ${script} | sudo sh -s -- ${option}${files}` : null,
    options: option + files,
    file: lines.join('\n'),
    compose: hasVariable ? variables.join('\n') : null,
  };
}

/** Whether a right beside others would let the service become root: commands run as a user who can use Docker's socket. */
export function opensRoot(right: Right, capabilities: readonly string[]): boolean {
  const has = (name: string) => capabilities.includes(name);
  if (right === 'commands' || right === 'terminal') return has('docker');
  return (right === 'docker' || right === 'docker_control') && (has('commands') || has('terminal'));
}

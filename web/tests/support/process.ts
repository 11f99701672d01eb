import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Where the built programs are: `scripts/test-web` says it. */
export const programs = process.env.SIGNALBOX_PROGRAMS ?? join(import.meta.dirname, '../../../target/debug');

/** What runs ends with the tests, however they end. */
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** A program of the product that runs. What it says goes to `log`. `around` is a command that becomes the program at its end. */
export class Program {
  readonly child: ChildProcess;
  readonly #name: string;

  constructor(name: string, args: string[], log: string, around: string[] = []) {
    this.#name = name;
    // Nothing of the environment is taken for a setting.
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('SIGNALBOX_')));
    const [command = '', ...rest] = [...around, join(programs, name), ...args];
    // The program writes to the file itself: what it has said before it listens is there when that is known.
    const file = openSync(log, 'a');
    try {
      this.child = spawn(command, rest, { env, stdio: ['ignore', 'pipe', file] });
    } finally {
      closeSync(file);
    }
    running.add(this.child);
    this.child.once('exit', () => running.delete(this.child));
  }

  /** The rest of the first line of its output that begins so. */
  async says(beginning: string): Promise<string> {
    const ended = once(this.child, 'exit').then(() => {
      throw new Error(`${this.#name} ended before it said "${beginning}"`);
    });
    const said = (async () => {
      if (this.child.stdout) {
        for await (const line of createInterface({ input: this.child.stdout })) {
          if (line.startsWith(beginning)) return line.slice(beginning.length);
        }
      }
      return ended;
    })();
    return Promise.race([said, ended]);
  }

  /** Ends it and waits for that. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    await ended;
  }
}

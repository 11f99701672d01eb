import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { opensRoot, waysTo, type Right } from './allow';

const SERVICE = 'https://box.example.com/';
const script = readFileSync('../packaging/install.sh', 'utf8');

describe('the line that allows something', () => {
  it('changes one option of the installed agent, and needs no key', () => {
    expect(waysTo(SERVICE, 'commands')).toEqual({
      installed: 'curl -fsSL https://box.example.com/install.sh | sudo sh -s -- --commands on',
      options: '--commands on',
      file: 'commands = "on"',
      compose: 'SIGNALBOX_AGENT_COMMANDS: "on"',
    });
    expect(waysTo(SERVICE, 'docker_control').installed).toMatch(/-- --docker control$/);
  });

  it('has options that the script takes', () => {
    const rights: Right[] = ['commands', 'terminal', 'logs', 'docker', 'docker_control', 'processes'];
    for (const right of rights) {
      const [option = '', value = ''] = waysTo(SERVICE, right).options.split(' ');
      const takes = script.split('\n').find((line) => line.includes(`${option}) one_of`));
      expect(takes, right).toMatch(new RegExp(` ${value}( |$)`));
    }
  });

  it('names a file that is to be read', () => {
    const ways = waysTo(SERVICE, 'logs', '/var/log/nginx');

    expect(ways.installed).toMatch(/-- --logs on --log-path \/var\/log\/nginx$/);
    expect(ways.file).toBe('logs = "on"\nlog_paths = ["/var/log/nginx"]');
    expect(ways.compose).toBe('SIGNALBOX_AGENT_LOGS: "on"\nSIGNALBOX_AGENT_LOG_PATH: "/var/log/nginx"');
  });

  it('has no variable for a path with a colon, which separates paths there', () => {
    const ways = waysTo(SERVICE, 'logs', '/srv/app:1.log');

    expect(ways).toEqual({
      installed: 'curl -fsSL https://box.example.com/install.sh | sudo sh -s -- --logs on --log-path /srv/app:1.log',
      options: '--logs on --log-path /srv/app:1.log',
      file: 'logs = "on"\nlog_paths = ["/srv/app:1.log"]',
      compose: null,
    });
  });

  it('never makes more than a path of one that the script would refuse', () => {
    for (const path of ['/var/log/a b', "/tmp/'; reboot; '", '/tmp/$(id)', 'relative', '/a"]\ncommands = "on"']) {
      const ways = waysTo(SERVICE, 'logs', path);

      expect(ways.installed).toBeNull();
      expect(ways.file.split('\n')).toHaveLength(2);
      expect(ways.compose?.split('\n')).toHaveLength(2);
      expect(ways.options).toBe(
        `--logs on --log-path ${path === 'relative' ? path : `'${path.replaceAll("'", `'\\''`)}'`}`,
      );
    }
  });
});

describe('a right beside Docker', () => {
  it('opens the way to root only together with a shell', () => {
    expect(opensRoot('commands', ['metrics', 'docker'])).toBe(true);
    expect(opensRoot('docker', ['metrics', 'terminal'])).toBe(true);
    expect(opensRoot('commands', ['metrics', 'logs'])).toBe(false);
    expect(opensRoot('logs', ['docker', 'commands'])).toBe(false);
    expect(opensRoot('docker_control', ['docker'])).toBe(false);
  });
});

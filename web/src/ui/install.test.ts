import { describe, expect, it } from 'vitest';
import { CAREFUL, hostOf, installLine, manualLine, options, quoted } from './install';

describe('the install line', () => {
  it('allows nothing that was not chosen', () => {
    expect(installLine('https://box.example.com', 'sbk_abc', CAREFUL)).toBe(
      'curl -fsSL https://box.example.com/install.sh | sudo sh -s -- --key sbk_abc',
    );
  });

  it('names each thing that was chosen', () => {
    const all = { commands: true, terminal: true, logs: true, docker: 'control', processes: false } as const;

    expect(options(all)).toEqual([
      '--commands on',
      '--terminal on',
      '--docker control',
      '--logs on',
      '--processes off',
    ]);
    expect(options({ ...CAREFUL, docker: 'off' })).toEqual(['--docker off']);
    expect(options({ ...CAREFUL, commands: true })).toEqual(['--commands on', '--docker read']);
    expect(options({ ...CAREFUL, terminal: true, docker: 'off' })).toEqual(['--terminal on', '--docker off']);
  });

  it('has one slash between the address and the file', () => {
    expect(installLine('http://127.0.0.1:8000/', 'k', CAREFUL)).toContain('http://127.0.0.1:8000/install.sh');
    expect(manualLine('http://127.0.0.1:8000/', CAREFUL)).toBe(
      'signalbox-agent --url http://127.0.0.1:8000 --key-file key.txt',
    );
  });

  it('lets no character mean something to the shell', () => {
    expect(quoted('https://[::1]:8000')).toBe("'https://[::1]:8000'");
    expect(quoted("a'; rm -rf /")).toBe("'a'\\''; rm -rf /'");
    expect(quoted('sbk_Ab-9')).toBe('sbk_Ab-9');
  });
});

describe('a host made of a name', () => {
  it.each([
    ['web-1', 'web-1'],
    ['Web 1 (Berlin)', 'web-1-berlin'],
    ['Ünïcode.example', 'u-ni-code.example'],
    ['---', 'unnamed'],
    ['日本', 'unnamed'],
    ['a'.repeat(62) + '-x', 'a'.repeat(62)],
  ])('%s gives %s', (name, host) => {
    expect(hostOf(name)).toBe(host);
  });
});

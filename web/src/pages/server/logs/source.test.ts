import { describe, expect, it } from 'vitest';
import { addressOfSource, faultOfPath, socketPath, sourceOf, type Source } from './source';

describe('a source', () => {
  it('is the same after a way through the address', () => {
    const sources: Source[] = [
      { kind: 'system' },
      { kind: 'container', containerId: 'web-1' },
      { kind: 'file', path: '/var/log/a b&c.log' },
    ];
    for (const source of sources) {
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries(addressOfSource(source))) if (value) query.set(name, value);
      expect(sourceOf(query)).toEqual(source);
    }
  });

  it('is asked of the socket', () => {
    expect(socketPath('s', { kind: 'file', path: '/a&b' }, 100)).toBe('/ws/logs/s?source=file&path=%2Fa%26b&tail=100');
    expect(socketPath('s', { kind: 'system' }, 5)).toBe('/ws/logs/s?tail=5');
  });

  it('needs a whole path', () => {
    expect(faultOfPath('var/log')).toContain('slash');
    expect(faultOfPath('/var/log/x')).toBeNull();
  });
});

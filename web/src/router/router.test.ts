// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { match } from './router.svelte';

describe('an address', () => {
  it('fits a pattern with what its parameters are', () => {
    expect(match('/servers/:id/:tab?', '/servers/42/logs')).toEqual({ id: '42', tab: 'logs' });
    expect(match('/servers/:id/:tab?', '/servers/42')).toEqual({ id: '42' });
    expect(match('/', '/')).toEqual({});
  });

  it('that is longer or shorter does not', () => {
    expect(match('/servers/:id/:tab?', '/servers')).toBeNull();
    expect(match('/servers/:id/:tab?', '/servers/42/logs/more')).toBeNull();
    expect(match('/wall', '/')).toBeNull();
  });

  it('is decoded, and survives what is no encoding', () => {
    expect(match('/alerts/:id?', '/alerts/a%20b')).toEqual({ id: 'a b' });
    expect(match('/alerts/:id?', '/alerts/%zz')).toEqual({ id: '%zz' });
  });
});

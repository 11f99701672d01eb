import { describe, expect, it } from 'vitest';
import { dayAfter, endOfDay, networksOf, prometheusConfig, scopeWords } from './tokens';

describe('which servers a token is for', () => {
  const nameOf = (id: string) => (id === 'gone' ? undefined : `web-${id}`);

  it('is all, a tag, or servers by name', () => {
    expect(scopeWords({ all: true }, nameOf)).toBe('All your servers');
    expect(scopeWords({ tag: 'lab' }, nameOf)).toBe('Servers with the tag lab');
    expect(scopeWords({ server_ids: ['1', 'gone'] }, nameOf)).toBe('web-1 and a deleted server');
  });

  it('names a few of many', () => {
    expect(scopeWords({ server_ids: ['1', '2', '3', '4', '5'] }, nameOf)).toBe('web-1, web-2 and 3 more');
  });
});

describe('what is entered', () => {
  it('are networks, however they are separated', () => {
    expect(networksOf(' 10.0.0.0/8, 192.0.2.7\n2001:db8::/32;10.0.0.0/8 ')).toEqual([
      '10.0.0.0/8',
      '192.0.2.7',
      '2001:db8::/32',
    ]);
    expect(networksOf('  ')).toEqual([]);
  });

  it('is a day, which counts to its end but not beyond the limit', () => {
    const now = new Date('2026-11-26T10:00:00').getTime();

    expect(dayAfter(now, 90)).toBe('2027-02-24');
    expect(endOfDay('2026-12-01', Infinity)).toBe(new Date('2026-12-01T23:59:59').toISOString());
    expect(endOfDay('2026-12-01', now)).toBe(new Date(now).toISOString());
    expect(endOfDay('1 December', now)).toBeNull();
  });
});

describe('the configuration of Prometheus', () => {
  it('reads all servers of the token, or the only one', () => {
    const all = prometheusConfig('https://box.example.org', 'sbt_x', { all: true });
    expect(all).toContain('scheme: https');
    expect(all).toContain('metrics_path: /api/v1/metrics/prometheus');
    expect(all).toContain('credentials: sbt_x');
    expect(all).toContain("targets: ['box.example.org']");

    const one = prometheusConfig('http://127.0.0.1:8000', 'sbt_x', { server_ids: ['abc'] });
    expect(one).toContain('scheme: http\n');
    expect(one).toContain('metrics_path: /api/v1/metrics/abc/prometheus');
    expect(one).toContain("targets: ['127.0.0.1:8000']");
  });
});

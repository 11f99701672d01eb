import { describe, expect, it } from 'vitest';
import type { Container } from '../../../api/types';
import { fits, held, portsOf, rowsOf, sorted, stateOf, verbsOf, type Row } from './containers';

const container = (changes: Partial<Container>): Container => ({
  id: '7654fcc30a73289a',
  name: 'web-1',
  image: 'nginx:1.27',
  state: 'running',
  status: 'Up 3 minutes',
  created_at: '2026-11-21T21:40:34.000Z',
  ports: [],
  labels: {},
  ...changes,
});

describe('stateOf', () => {
  it('says the state and its health', () => {
    const of = (state: string, status: string) => Object.values(stateOf({ state, status }));
    expect(of('running', 'Up 3 minutes')).toEqual(['running', 'ok']);
    expect(of('running', 'Up 3 minutes (healthy)')).toEqual(['running, healthy', 'ok']);
    expect(of('running', 'Up 3 minutes (unhealthy)')).toEqual(['running, unhealthy', 'bad']);
    expect(of('running', 'Up 3 s (health: starting)')).toEqual(['running, starting', 'warn']);
    expect(of('exited', 'Exited (1) 2 minutes ago')).toEqual(['exited', 'bad']);
    expect(of('exited', 'Exited (137) 2 minutes ago')).toEqual(['exited', 'idle']);
  });
});

describe('verbsOf', () => {
  it('offers what can be done', () => {
    expect(verbsOf('running')).toEqual(['restart', 'pause', 'stop']);
    expect(verbsOf('paused')).toContain('unpause');
    expect(verbsOf('exited')).toEqual(['start']);
  });
});

describe('portsOf', () => {
  it('says ports once for IPv4 and IPv6', () => {
    const port = { private_port: 80, public_port: 8080, protocol: 'tcp' };
    expect(
      portsOf([
        { ...port, host_ip: '0.0.0.0' },
        { ...port, host_ip: '::' },
        { private_port: 53, public_port: null, protocol: 'udp', host_ip: null },
        { private_port: 5432, public_port: 5432, protocol: 'tcp', host_ip: '127.0.0.1' },
      ]),
    ).toEqual(['8080 → 80', '53/udp', '127.0.0.1:5432 → 5432']);
  });
});

describe('the list', () => {
  it('is searched by every word', () => {
    expect(fits(container({}), 'NGINX web')).toBe(true);
    expect(fits(container({}), 'nginx db')).toBe(false);
    expect(fits(container({}), '')).toBe(true);
  });

  it('is sorted by what is used, and those that use nothing come last', () => {
    const list = ['a', 'b', 'c'].map((id) => container({ id, name: id }));
    const usage = new Map([
      ['b', { cpu_percent: 5, memory_bytes: 1 }],
      ['c', { cpu_percent: 9, memory_bytes: 1 }],
    ]);
    expect(sorted(list, 'cpu', true, usage).map((one) => one.id)).toEqual(['c', 'b', 'a']);
    expect(sorted(list, 'name', true, usage).map((one) => one.id)).toEqual(['c', 'b', 'a']);
  });
});

describe('a list that is held', () => {
  const listed = (...ids: string[]) => ids.map((id) => container({ id }));
  const before = rowsOf(listed('a', 'b', 'c', 'd'));
  const told = (rows: readonly Row[]) => rows.map((row) => `${row.container.id}${row.isGone ? ' gone' : ''}`);
  const then = (rows: readonly Row[], ...ids: string[]) => held(listed(...ids), listed(...ids), rows);

  it('stays as it was, with what is new behind', () => {
    expect(told(then(before, 'new', 'd', 'c', 'a', 'newer', 'b'))).toEqual(['a', 'b', 'c', 'd', 'new', 'newer']);
  });

  it('keeps the places of those that are gone', () => {
    expect(told(then(before, 'd', 'c', 'a'))).toEqual(['a', 'b gone', 'c', 'd']);
    expect(told(then(before, 'c'))).toEqual(['a gone', 'b gone', 'c', 'd gone']);
    expect(told(then(before))).toEqual(['a gone', 'b gone', 'c gone', 'd gone']);
  });

  it('has a container that comes back in its place, as it is then', () => {
    const without = then(before, 'a', 'c', 'd');
    const back = listed('a', 'b', 'c', 'd').map((one) => ({ ...one, status: 'Up 1 second' }));

    const rows = held(back, back, without);

    expect(told(rows)).toEqual(['a', 'b', 'c', 'd']);
    expect(rows.map((row) => row.container)).toEqual(back);
  });

  it('keeps those that fit no longer', () => {
    const [a, c, d] = listed('a', 'c', 'd') as [Container, Container, Container];
    const b = container({ id: 'b', state: 'exited' });

    const rows = held([a, c, d], [a, b, c, d], before);

    expect(told(rows)).toEqual(['a', 'b', 'c', 'd']);
    expect(rows[1]?.container).toBe(b);
  });

  it('does not grow by what comes and goes', () => {
    let rows = then(before, 'a', 'c', 'd', 'new', 'newer');
    rows = then(rows, 'a', 'c', 'd', 'newest', 'newer');
    expect(told(rows)).toEqual(['a', 'b gone', 'c', 'd', 'newer', 'newest']);
    expect(told(then(rows, 'a', 'c', 'd'))).toEqual(['a', 'b gone', 'c', 'd']);
  });
});

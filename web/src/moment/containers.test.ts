import { describe, expect, it, test } from 'vitest';
import { containerOf, containersAt, loggedThen, namesOf, statesAt, withStates } from './containers';
import { eventThen } from './testing';

const column = (...avg: (number | null)[]) => ({ avg, min: avg, max: avg });
const table = {
  resolution_seconds: 60,
  timestamps: [100, 160, 220],
  series: {
    'container_cpu:web': column(1, 2, 3),
    'container_memory:web': column(10, 20, 30),
    'container_cpu:backup': column(null, 90, null),
    cpu_percent: column(5, 5, 5),
  },
};

test('containers are those of the last values before a time, the busiest first', () => {
  expect(containersAt(table, 170)).toEqual([
    { name: 'backup', cpu: 90, memory: null },
    { name: 'web', cpu: 2, memory: 20 },
  ]);
  expect(containersAt(table, 500).map(({ name }) => name)).toEqual(['web']);
  expect(containersAt(table, 50).map(({ cpu }) => cpu)).toEqual([1]);
  expect(containersAt({ resolution_seconds: 1, timestamps: [], series: {} }, 50)).toEqual([]);
});

test('both series of a container are read, and of no more containers than asked', () => {
  const names = ['container_cpu:a', 'container_memory:a', 'container_cpu:b,c', 'container_cpu:d', 'cpu_percent'];

  const both = (...own: string[]) => own.flatMap((name) => [`container_cpu:${name}`, `container_memory:${name}`]);
  expect(namesOf(names, 5)).toEqual(both('a', 'b,c', 'd'));
  expect(namesOf(names, 1)).toHaveLength(2);
});

describe('the state of containers', () => {
  const event = (minute: number, name: string, action: string, more = {}) =>
    eventThen(`${minute}`, 'container', { at: `2026-11-20T03:${minute}:00Z`, detail: { name, action, ...more } });
  const at = Date.parse('2026-11-20T03:30:00Z') / 1000;

  it('is what the engine last said before the time', () => {
    const states = statesAt(
      [
        event(40, 'web', 'die', { exit_code: 1 }),
        event(20, 'web', 'die', { exit_code: 137 }),
        event(21, 'web', 'start'),
        event(10, 'job', 'die', { exit_code: 3 }),
        event(11, 'old', 'die', { exit_code: 0 }),
        event(12, 'old', 'destroy'),
        event(13, 'cache', 'pause'),
        event(14, 'cache', 'health_status'),
      ],
      at,
    );

    expect([...states].map(([name, { state, code }]) => [name, state, code])).toEqual([
      ['job', 'ended', 3],
      ['cache', 'paused', null],
      ['web', 'running', null],
    ]);
  });

  it('stands beside what they used; what had ended comes last', () => {
    const states = statesAt([event(10, 'job', 'die', { exit_code: 3 }), event(11, 'gone', 'start')], at);

    const all = withStates([{ name: 'web', cpu: 1, memory: 2 }], states);

    expect(all.map(({ name, told }) => [name, told?.state ?? null])).toEqual([
      ['web', null],
      ['job', 'ended'],
    ]);
  });
});

describe('the containers whose logs belong to a minute', () => {
  const span = { from: Date.parse('2026-11-20T03:10:00Z') / 1000, to: Date.parse('2026-11-20T03:20:00Z') / 1000 };
  const of = (target: string, minute: number, resolved: number | null = null) => ({
    metric_type: 'container_state' as const,
    target,
    server_id: 's',
    triggered_at: `2026-11-20T03:${minute}:00Z`,
    resolved_at: resolved === null ? null : `2026-11-20T03:${resolved}:00Z`,
  });

  it('are those whose alerts fired then, each once', () => {
    const alerts = [of('web', 15), of('web', 17), of('db', 11, 12), of('over', 4, 9), of('later', 21)];

    expect(loggedThen(alerts, 's', 'cpu_percent', span)).toEqual(['web', 'db']);
    expect(loggedThen([of('web', 15)], 'other', 'cpu_percent', span)).toEqual([]);
  });

  it('begin with the one whose numbers are shown', () => {
    expect(loggedThen([of('web', 15)], 's', 'container_cpu:cache', span)).toEqual(['cache', 'web']);
    expect(loggedThen([of('web', 15)], 's', 'container_cpu:web', span)).toEqual(['web']);
    expect(loggedThen([], 's', 'container_cpu', span)).toEqual([]);
    expect(loggedThen([], 's', 'fan_speed:cpu', span)).toEqual([]);
  });

  it('are none of alerts about something else', () => {
    expect(containerOf({ metric_type: 'disk', target: '/var' })).toBeNull();
    expect(loggedThen([{ ...of('/var', 15), metric_type: 'disk' }], 's', 'cpu_percent', span)).toEqual([]);
  });
});

import { expect, it } from 'vitest';
import type { Dashboard, View, ViewDefinition } from '../explore/types';
import { grafanaOf, type Fleet } from './grafana';

const WEB_1 = '019aa0b8-7d1c-7e3a-9c61-000000000001';
const WEB_2 = '019aa0b8-7d1c-7e3a-9c61-000000000002';
const DB_1 = '019aa0b8-7d1c-7e3a-9c61-000000000003';

const fleet: Fleet = {
  servers: [
    { id: WEB_1, tags: ['web', 'eu'] },
    { id: WEB_2, tags: ['web'] },
    { id: DB_1, tags: [] },
  ],
  series: new Map([
    ['fan_speed', { unit: 'rpm', kind: 'gauge' }],
    ['requests', { unit: 'count', kind: 'counter' }],
  ]),
};

const own = { shared_with: 'nobody' as const, owner: { id: 'o', username: 'ada' }, mine: true };

function view(given: Partial<ViewDefinition>, id = 'v'): View {
  const definition: ViewDefinition = {
    version: 1,
    series: ['cpu_percent'],
    servers: [],
    tag: null,
    function: 'avg',
    by: 'server',
    top: 5,
    rank: 'max',
    range: '7d',
    start: null,
    end: null,
    events: true,
    ...given,
  };
  const at = '2026-11-20T09:30:00.123Z';
  return {
    ...{ id, name: `View ${id}`, description: '', definition, created_at: at, updated_at: at },
    ...{ hidden_servers: 0, ...own },
  };
}

interface Model {
  title: string;
  time: { from: string };
  panels: {
    title: string;
    gridPos: object;
    fieldConfig: { defaults: { unit: string } };
    targets: { expr: string; legendFormat: string; refId: string }[];
  }[];
}

function model(...views: View[]): Model {
  const panels = views.map((one) => ({ view_id: one.id, width: 6, height: 2 }));
  const at = '2026-11-20T09:30:00.123Z';
  const layout = { version: 1, panels: [...panels, { view_id: 'gone', width: 6, height: 1 }], range: null };
  const dashboard: Dashboard = {
    ...{ id: 'd', name: 'Fleet', description: '', layout, created_at: at, updated_at: at },
    ...own,
  };
  return grafanaOf(dashboard, new Map(views.map((one) => [one.id, one])), fleet) as Model;
}

const asked = (given: Partial<ViewDefinition>) =>
  model(view(given)).panels[0]?.targets.map(({ expr, legendFormat }) => [expr, legendFormat]);

it('asks Prometheus for the names of our exposition', () => {
  expect(asked({})).toEqual([['topk(5, avg by (instance) (100 * signalbox_cpu_usage_ratio))', '{{instance}}']]);
  expect(asked({ series: ['network_in:eth0'], by: 'none', function: 'sum' })).toEqual([
    ['sum(rate(node_network_receive_bytes_total{device="eth0"}[$__rate_interval]))', 'network_in:eth0'],
  ]);
  expect(asked({ series: ['disk_percent:*'], by: 'series', servers: [WEB_1] })?.[0]).toEqual([
    `topk(5, 100 * (node_filesystem_size_bytes{server_id="${WEB_1}"} - node_filesystem_free_bytes{server_id="${WEB_1}"})` +
      ` / (node_filesystem_size_bytes{server_id="${WEB_1}"} - node_filesystem_free_bytes{server_id="${WEB_1}"}` +
      ` + node_filesystem_avail_bytes{server_id="${WEB_1}"}))`,
    '{{instance}} {{mountpoint}}',
  ]);
  expect(asked({ series: ['temperature:coretemp Core 0'], by: 'series' })?.[0]?.[0]).toBe(
    'topk(5, node_hwmon_temp_celsius{chip="coretemp",sensor="Core 0"})',
  );
});

it('asks a question a tag, because Prometheus knows none', () => {
  expect(asked({ by: 'tag' })).toEqual([
    [`avg(100 * signalbox_cpu_usage_ratio{server_id="${WEB_1}"})`, 'eu'],
    [`avg(100 * signalbox_cpu_usage_ratio{server_id=~"${WEB_1}|${WEB_2}"})`, 'web'],
  ]);
  expect(asked({ tag: 'eu', by: 'none' })).toEqual([
    [`avg(100 * signalbox_cpu_usage_ratio{server_id="${WEB_1}"})`, 'cpu_percent'],
  ]);
  expect(asked({ tag: 'none of them', by: 'none' })?.[0]?.[0]).toContain('server_id=~"-"');
});

it('knows open series by their units, and leaves out what it does not know', () => {
  expect(asked({ series: ['fan_speed:a"b\\c', 'requests', 'unheard_of'], by: 'series' })).toEqual([
    ['topk(5, signalbox_fan_speed_rpm{target="a\\"b\\\\c"})', '{{instance}} {{target}} fan_speed'],
    ['topk(5, rate(signalbox_requests_count[$__rate_interval]))', '{{instance}} requests'],
  ]);
});

it('has the views at their places, and none that is gone', () => {
  const made = model(view({}, 'a'), view({ series: ['memory_used'] }, 'b'));

  expect([made.title, made.time.from]).toEqual(['Fleet', 'now-7d']);
  expect(model(view({ range: '2d' })).time.from).toBe('now-2d');
  expect(model(view({ range: null })).time.from).toBe('now-24h');
  expect(made.panels.map(({ title, gridPos, fieldConfig }) => [title, gridPos, fieldConfig.defaults.unit])).toEqual([
    ['View a', { x: 0, y: 0, w: 12, h: 16 }, 'percent'],
    ['View b', { x: 12, y: 0, w: 12, h: 16 }, 'bytes'],
  ]);
  expect(made.panels[0]?.targets[0]?.refId).toBe('A');
});

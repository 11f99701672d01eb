// A dashboard as Grafana imports it: its panels ask Prometheus, which scrapes this service under the names of our exposition.
// Pure.
import type { SeriesName } from '../../api/types';
import { unitOfTyped } from '../../charts/metrics';
import { unitOf, type Unit } from '../../charts/units';
import { parts } from '../explore/lines';
import { rangeOfWords } from '../explore/query';
import type { Dashboard, View, ViewDefinition } from '../explore/types';
import model from './grafana.json';
import { placed } from './layout';

/** What the names of servers are, for those that a view is of. */
export interface Fleet {
  servers: readonly { id: string; tags: readonly string[] }[];
  /** Series by the part of their names before the colon, for the open ones. */
  series: ReadonlyMap<string, Pick<SeriesName, 'unit' | 'kind'>>;
}

/** The label that tells targets apart, and how a name says it. */
type Labels = (of: string) => Record<string, string>;

interface Exposed {
  /** With `$` where the labels go. */
  expr: string;
  labels?: Labels;
  /** The labels that name a target in a legend. */
  legend?: string[];
}

const device: Labels = (of) => ({ device: of });
const path: Labels = (of) => ({ mountpoint: of });
const container: Labels = (of) => ({ name: of });
const rate = (name: string) => `rate(${name}$[$__rate_interval])`;

/** The typed series as PromQL. */
const EXPOSED: Record<string, Exposed> = {
  cpu_percent: { expr: '100 * signalbox_cpu_usage_ratio$' },
  cpu_core: { expr: '100 * signalbox_cpu_core_usage_ratio$', labels: (of) => ({ cpu: of }), legend: ['cpu'] },
  memory_percent: { expr: '100 * (1 - node_memory_MemAvailable_bytes$ / node_memory_MemTotal_bytes$)' },
  memory_used: { expr: 'node_memory_MemTotal_bytes$ - node_memory_MemAvailable_bytes$' },
  swap_used: { expr: 'node_memory_SwapTotal_bytes$ - node_memory_SwapFree_bytes$' },
  load_1: { expr: 'node_load1$' },
  load_5: { expr: 'node_load5$' },
  load_15: { expr: 'node_load15$' },
  process_count: { expr: 'node_processes_pids$' },
  disk_used: {
    expr: 'node_filesystem_size_bytes$ - node_filesystem_free_bytes$',
    labels: path,
    legend: ['mountpoint'],
  },
  disk_percent: {
    expr:
      '100 * (node_filesystem_size_bytes$ - node_filesystem_free_bytes$)' +
      ' / (node_filesystem_size_bytes$ - node_filesystem_free_bytes$ + node_filesystem_avail_bytes$)',
    labels: path,
    legend: ['mountpoint'],
  },
  disk_read: { expr: rate('node_disk_read_bytes_total'), labels: device, legend: ['device'] },
  disk_write: { expr: rate('node_disk_written_bytes_total'), labels: device, legend: ['device'] },
  network_in: { expr: rate('node_network_receive_bytes_total'), labels: device, legend: ['device'] },
  network_out: { expr: rate('node_network_transmit_bytes_total'), labels: device, legend: ['device'] },
  temperature: { expr: 'node_hwmon_temp_celsius$', labels: sensor, legend: ['chip', 'sensor'] },
  container_cpu: { expr: '100 * signalbox_container_cpu_usage_cores$', labels: container, legend: ['name'] },
  container_memory: { expr: 'container_memory_usage_bytes$', labels: container, legend: ['name'] },
  container_network_in: {
    expr: rate('container_network_receive_bytes_total'),
    labels: container,
    legend: ['name'],
  },
  container_network_out: {
    expr: rate('container_network_transmit_bytes_total'),
    labels: container,
    legend: ['name'],
  },
};

/** The chip's name and the sensor's with a space between them; thermal zones have one name for both. */
function sensor(of: string): Record<string, string> {
  const at = of.indexOf(' ');
  return at < 0 ? { chip: of, sensor: of } : { chip: of.slice(0, at), sensor: of.slice(at + 1) };
}

/** Grafana's names of units. */
const UNITS: Partial<Record<Unit, string>> = {
  percent: 'percent',
  bytes: 'bytes',
  bytes_per_second: 'binBps',
  celsius: 'celsius',
  seconds: 's',
  milliseconds: 'ms',
  per_second: 'ops',
  volts: 'volt',
  watts: 'watt',
  rpm: 'rotrpm',
  bool: 'bool',
  days: 'd',
};

const DATASOURCE = { type: 'prometheus', uid: '${DS_PROMETHEUS}' };
/** Grafana has twice as many columns. */
const WIDER = 2;
const ROW = 8;

/** A string as PromQL writes it. */
function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
}

function selector(labels: Record<string, string>, servers: readonly string[] | null): string {
  const given = Object.entries(labels).map(([name, value]) => `${name}=${quoted(value)}`);
  // Ids have no character that an expression would read otherwise. No server at all matches none.
  if (servers)
    given.push(servers.length === 1 ? `server_id="${servers[0]}"` : `server_id=~"${servers.join('|') || '-'}"`);
  return given.length > 0 ? `{${given.join(',')}}` : '';
}

interface Source {
  expr: string;
  legend: string[];
  unit: Unit;
}

/** A series of some servers as PromQL; null where nothing is known of it. */
function source(name: string, servers: readonly string[] | null, fleet: Fleet): Source | null {
  const [base, of] = parts(name);
  const typed = EXPOSED[base];
  const hasTarget = of !== '' && of !== '*';
  if (typed) {
    const labels = hasTarget && typed.labels ? typed.labels(of) : {};
    const expr = typed.expr.replaceAll(/\$(?!__)/g, () => selector(labels, servers));
    return { expr, legend: typed.legend ?? [], unit: unitOfTyped(base) ?? 'count' };
  }
  const open = fleet.series.get(base);
  if (!open) return null;
  const labels = selector(hasTarget ? { target: of } : {}, servers);
  const metric = `signalbox_${base}_${open.unit}${labels}`;
  const isCounter = open.kind === 'counter';
  const expr = isCounter ? `rate(${metric}[$__rate_interval])` : metric;
  return { expr, legend: of ? ['target'] : [], unit: unitOf(open.unit, open.kind) };
}

interface Target {
  refId: string;
  expr: string;
  legendFormat: string;
  datasource: typeof DATASOURCE;
}

/** The questions of a view. Prometheus knows no tags: each tag becomes a question of its own. */
function targetsOf(view: ViewDefinition, fleet: Fleet): { targets: Target[]; unit: Unit | null } {
  const chosen = view.servers.length > 0 ? new Set(view.servers) : null;
  const isFiltered = chosen !== null || view.tag !== null;
  const members = fleet.servers.filter(
    (one) => (!chosen || chosen.has(one.id)) && (view.tag === null || one.tags.includes(view.tag)),
  );
  const ids = (those: readonly { id: string }[]) => those.map((one) => one.id);
  const all = isFiltered ? ids(members) : null;
  const top = (expr: string) => ['topk', `(${view.top}, ${expr})`].join('');
  const found: { expr: string; legend: string }[] = [];
  let unit: Unit | null = null;
  const add = (name: string, servers: readonly string[] | null, write: (source: Source) => [string, string]) => {
    const asked = source(name, servers, fleet);
    if (!asked) return;
    unit ??= asked.unit;
    const [expr, legend] = write(asked);
    found.push({ expr, legend });
  };
  for (const name of view.series) {
    const label = view.series.length > 1 ? ` ${parts(name)[0]}` : '';
    if (view.by === 'none') add(name, all, ({ expr }) => [`${view.function}(${expr})`, name]);
    else if (view.by === 'server')
      add(name, all, ({ expr }) => [
        top([view.function, 'by', '(instance)', `(${expr})`].join(' ')),
        `{{instance}}${label}`,
      ]);
    else if (view.by === 'series')
      add(name, all, ({ expr, legend }) => [
        top(expr),
        `{{instance}}${legend.map((one) => ` {{${one}}}`).join('')}${label}`,
      ]);
    else {
      const tags = [...new Set(members.flatMap((one) => one.tags))].sort();
      for (const tag of tags)
        add(name, ids(members.filter((one) => one.tags.includes(tag))), ({ expr }) => [
          `${view.function}(${expr})`,
          `${tag}${label}`,
        ]);
    }
  }
  const targets = found.map(({ expr, legend }, place) => ({
    refId: refId(place),
    expr,
    legendFormat: legend,
    datasource: DATASOURCE,
  }));
  return { targets, unit };
}

/** `A` to `Z`, then `AA`. */
function refId(place: number): string {
  const letter = String.fromCharCode(65 + (place % 26));
  return place < 26 ? letter : refId(Math.floor(place / 26) - 1) + letter;
}

/** Grafana's `now-24h`: it has the same letters for units. */
function fromOf(key: string | null): string {
  return rangeOfWords(key) ? `now-${key}` : 'now-24h';
}

/** The model of a dashboard, for Grafana 9 and later. */
export function grafanaOf(dashboard: Dashboard, views: ReadonlyMap<string, View>, fleet: Fleet): object {
  const { places } = placed(dashboard.layout.panels);
  const shown = places.filter(({ panel }) => views.has(panel.view_id));
  const first = shown.map(({ panel }) => views.get(panel.view_id)?.definition.range).find(Boolean) ?? null;
  const panels = shown.map(({ panel, x, y }, place) => {
    const view = views.get(panel.view_id) as View;
    const { targets, unit } = targetsOf(view.definition, fleet);
    return {
      id: place + 1,
      type: 'timeseries',
      title: view.name,
      description: view.description,
      datasource: DATASOURCE,
      gridPos: { x: x * WIDER, y: y * ROW, w: panel.width * WIDER, h: panel.height * ROW },
      fieldConfig: {
        defaults: { unit: (unit && UNITS[unit]) ?? 'short', min: 0, custom: { spanNulls: false } },
        overrides: [],
      },
      options: {
        legend: { displayMode: 'table', placement: 'bottom', calcs: ['min', 'mean', 'max', 'lastNotNull'] },
        tooltip: { mode: 'multi', sort: 'desc' },
      },
      targets,
    };
  });
  return {
    ...model,
    title: dashboard.name,
    description: dashboard.description,
    time: { from: fromOf(dashboard.layout.range ?? first), to: 'now' },
    panels,
  };
}

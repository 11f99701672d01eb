// What the heat map can show, and on which scale. Pure.
import * as m from '#messages/timeline';
import { WATCHED, unitOfTyped } from '../../charts/metrics';
import { axisRange, type Unit } from '../../charts/units';

export const USUAL_METRIC = 'cpu_percent';

/** Series that have a name here, in the order of the list. Of those with several targets the highest counts. */
const NAMED: [base: string, label: () => string][] = [
  ['cpu_percent', m.cpu],
  ['memory_percent', m.memory],
  ['disk_percent', m.disk],
  ['load_1', m.load],
  ['temperature', m.temperature],
  ['network_in', m.networkIn],
  ['network_out', m.networkOut],
  ['disk_read', m.diskRead],
  ['disk_write', m.diskWrite],
  ['swap_used', m.swap],
  ['cpu_core', m.core],
  ['process_count', m.processes],
  ['container_cpu', m.containerCpu],
  ['container_memory', m.containerMemory],
];

export interface Choice {
  name: string;
  label: string;
}

export function typedChoices(): Choice[] {
  return NAMED.map(([name, label]) => ({ name, label: label() }));
}

export function labelOfMetric(name: string): string {
  return NAMED.find(([base]) => base === name)?.[1]() ?? name;
}

export interface Scale {
  unit: Unit;
  /** The value with the last colour. */
  top: number;
  /** From which share of the scale on it is too much; 1 where nobody can say. */
  alarmAt: number;
}

/** The scale of a metric whose highest value is `most`. Shares end at 100 %, whatever was measured. */
export function scaleOf(name: string, openUnit: Unit | undefined, most: number | null): Scale {
  const base = name.split(':', 1)[0] ?? name;
  const unit = unitOfTyped(base) ?? openUnit ?? 'count';
  const usual = WATCHED.find((watched) => watched.base === base && watched.unit === unit)?.usual;
  // Traffic that is much for one server is little for another.
  const alarm = unit === 'bytes_per_second' || unit === 'bytes' ? undefined : usual;
  const isShare = unit === 'percent' && !base.startsWith('container');
  const [, top] = axisRange(unit, most, isShare ? 100 : null, []);
  return { unit, top: isShare ? 100 : top, alarmAt: alarm !== undefined && alarm < top ? alarm / top : 1 };
}

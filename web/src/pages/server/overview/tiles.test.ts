import { expect, it } from 'vitest';
import { emptyTable } from '../../../charts/series';
import { traffic } from './tiles';

it('counts what comes through once, whatever it passes inside', () => {
  const table = emptyTable();
  for (const [name, value] of Object.entries({ 'network_in:eth0': 5, 'network_in:eth1': 3, 'network_in:veth12': 50 })) {
    table.columns.set(name, { avg: [value], min: [value], max: [value] });
  }

  expect(traffic(table)).toEqual({ in: 8, out: null });
});

import { expect, test } from 'vitest';
import { helpAddress, topicOf } from './help';

const of = (address: string) => {
  const [path = '', query] = address.split('?');
  return helpAddress(topicOf(path, new URLSearchParams(query)));
};

test('the help begins with what is on the page', () => {
  expect(of('/')).toBe('/help/guides/interface');
  expect(of('/servers')).toBe('/help/guides/interface');
  expect(of('/servers/new')).toBe('/help/guides/agents#install-an-agent');
  expect(of('/servers/0197')).toBe('/help/guides/metrics');
  expect(of('/servers/0197/logs')).toBe('/help/guides/logs');
  expect(of('/alerts')).toBe('/help/guides/alerts#alerts');
  expect(of('/alerts/0197')).toBe('/help/guides/alerts#alerts');
  expect(of('/alerts?view=thresholds')).toBe('/help/guides/alerts#thresholds');
  expect(of('/run')).toBe('/help/guides/commands');
  expect(of('/run?view=waiting')).toBe('/help/guides/signed-commands#wait-for-more-signatures');
  expect(of('/run?view=schedules')).toBe('/help/guides/schedules');
  expect(of('/account/notifications')).toBe('/help/guides/alerts#channels');
});

test('where there is nothing about a page the help begins at its beginning', () => {
  expect(of('/nope')).toBe('/help');
  expect(of('/account/nope')).toBe('/help/guides/interface');
  expect(of('/constructor')).toBe('/help');
});

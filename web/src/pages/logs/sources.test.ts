import { expect, it } from 'vitest';
import { keyOf, ofKey, type Source } from '../server/logs/source';
import { addressWith, chosenOf, MOST_LOGS, namesOf, short } from './sources';

const ONE = '01936f2e-0000-7000-8000-000000000001';
const TWO = '01936f2e-0000-7000-8000-000000000002';

it('a log is the same after a way through the address', () => {
  const sources: Source[] = [
    { kind: 'system' },
    { kind: 'container', containerId: 'web:1&a' },
    { kind: 'file', path: '/var/log/a b:c.log' },
  ];
  const keys = sources.map((source) => keyOf(ONE, source));
  const query = new URLSearchParams(addressWith(new URLSearchParams('q=x'), keys).split('?')[1]);

  expect(chosenOf(query).map((one) => one.source)).toEqual(sources);
  expect(query.get('q')).toBe('x');
});

it('what makes no sense in an address is left aside, and so is what is too much', () => {
  for (const text of ['', 'x', `${ONE}:`, `${ONE}:systems`, `${ONE}:container:`, `${ONE}:file:relative`, '../a:system'])
    expect(ofKey(text)).toBeNull();
  const many = new URLSearchParams(Array.from({ length: 40 }, (_, index) => ['log', `${ONE}:container:c${index}`]));
  expect(chosenOf(many)).toHaveLength(MOST_LOGS);
  expect(chosenOf(new URLSearchParams(`log=${ONE}:system&log=${ONE}:system`))).toHaveLength(1);
});

it('names tell logs apart with as little as is needed', () => {
  const name = (id: string) => (id === ONE ? 'web-eu-1' : 'db-primary');
  const names = (...keys: string[]) => [
    ...namesOf(chosenOf(new URLSearchParams(keys.map((key) => ['log', key]))), name, 'system').values(),
  ];

  expect(names(`${ONE}:container:shop`, `${ONE}:container:cart`)).toEqual(['shop', 'cart']);
  expect(names(`${ONE}:system`, `${TWO}:system`)).toEqual(['web-eu-1', 'db-primary']);
  expect(names(`${ONE}:container:shop`, `${TWO}:container:shop`)).toEqual(['web-eu-1/shop', 'db-primary/shop']);
  expect(short('a-very-long-name-of-a-container-7')).toBe('a-very-long…ontainer-7');
});

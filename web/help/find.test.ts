import { expect, test } from 'vitest';
import { excerptOf, Finder, wordsOf, type HelpIndex } from './find';

const INDEX: HelpIndex = [
  {
    address: '/help/guides/alerts',
    title: 'Alerts',
    sections: [
      ['', '', 'A threshold says which metric counts as a problem.'],
      ['silences', 'Silences', 'While servers are updated. The service records alerts.'],
    ],
  },
  {
    address: '/help/operate/proxy',
    title: 'Behind a proxy',
    sections: [
      ['host-names', 'Host names', 'It answers 421 host_not_allowed to other names. The host of an alert.'],
      ['nginx', 'nginx', 'proxy_set_header Upgrade; WebSocket. --trusted-proxies names the proxy that is allowed.'],
    ],
  },
];

const find = (query: string) => new Finder(INDEX).find(query);
const addresses = (query: string) => find(query).map(({ address }) => address);
const text = (query: string) =>
  find(query)[0]
    ?.excerpt.map(({ text, isMatch }) => (isMatch ? `[${text}]` : text))
    .join('');

test('a heading says more than a text', () => {
  expect(addresses('silence')[0]).toBe('/help/guides/alerts#silences');
  expect(addresses('alerts')[0]).toMatch('/help/guides/alerts');
});

test('a hit names its page, its heading and what it found', () => {
  expect(find('upgrade')[0]).toMatchObject({ page: 'Behind a proxy', heading: 'nginx' });
  expect(text('upgrade')).toBe(
    'proxy_set_header [Upgrade]; WebSocket. --trusted-proxies names the proxy that is allowed.',
  );
});

test('the beginning of a word is enough, and so is its plural', () => {
  expect(addresses('thresh')).toEqual(['/help/guides/alerts']);
  expect(addresses('thresholds')).toEqual(['/help/guides/alerts']);
});

test('names of codes and flags are found as they stand', () => {
  expect(addresses('host_not_allowed')[0]).toBe('/help/operate/proxy#host-names');
  expect(addresses('--trusted-proxies')).toEqual(['/help/operate/proxy#nginx']);
  expect(addresses('socket')).toEqual(['/help/operate/proxy#nginx']);
});

test('sections with all words come alone, otherwise those with the most come first', () => {
  expect(addresses('proxy upgrade')).toEqual(['/help/operate/proxy#nginx']);
  expect(addresses('upgrade nonsense')).toEqual(['/help/operate/proxy#nginx']);
  expect(addresses('how do i update a server')).toEqual(['/help/guides/alerts#silences']);
});

test('what is nowhere, and nothing, find nothing', () => {
  expect(find('xylophone')).toEqual([]);
  expect(find('  ')).toEqual([]);
  expect(find('--')).toEqual([]);
  expect(find('.*')).toEqual([]);
});

test('small words count where there are no others', () => {
  expect(wordsOf('what is a policy')).toEqual(['policy']);
  expect(wordsOf('what is it')).toEqual(['what', 'is', 'it']);
});

test('an excerpt is a window around the words, cut at words', () => {
  const long = `${'before '.repeat(40)}the needle here ${'after '.repeat(60)}`.trim();

  const pieces = excerptOf(long, ['needle']);

  const whole = pieces.map((piece) => piece.text).join('');
  expect(pieces.filter(({ isMatch }) => isMatch)).toEqual([{ text: 'needle', isMatch: true }]);
  expect(whole).toMatch(/^… before .* the needle here after .* after …$/);
  expect(whole.length).toBeLessThan(200);
});

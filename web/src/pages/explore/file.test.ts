import { expect, it } from 'vitest';
import { fileName } from './file';

it('a name becomes that of a file', () => {
  expect(fileName('Web servers (EU): CPU', 'csv')).toBe('web-servers-eu-cpu.csv');
  expect(fileName('../../etc/passwd', 'json')).toBe('etc-passwd.json');
  expect(fileName('日本 1', 'csv')).toBe('日本-1.csv');
  expect(fileName('///', 'csv')).toBe('signalbox.csv');
});

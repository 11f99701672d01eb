import { expect, test } from 'vitest';
import { programOf } from './agent';

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0', 'Firefox 132 on Linux'],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0',
    'Edge 131 on Windows',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15',
    'Safari 18 on macOS',
  ],
  [
    'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36',
    'Chrome 131 on Android',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/131.0 Mobile/15E148 Safari/604.1',
    'Chrome 131 on iPhone',
  ],
  ['curl/7.88.1', 'curl 7.88.1'],
  ['python-requests/2.32.3', 'Python requests 2.32.3'],
  ['signalbox demo', 'signalbox demo'],
  ['', 'A program without a name'],
])('%s', (userAgent, name) => {
  expect(programOf(userAgent).name).toBe(name);
});

test('a phone is known from a computer', () => {
  expect(programOf('Mozilla/5.0 (Linux; Android 14) Chrome/131.0 Mobile Safari/537.36').isPhone).toBe(true);
  expect(programOf('Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0').isPhone).toBe(false);
});

test('what is too long for a line is cut', () => {
  expect(programOf('x'.repeat(300)).name).toHaveLength(60);
});

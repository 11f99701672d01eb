import { describe, expect, it } from 'vitest';
import { levelOf, levelOfName } from './levels';

describe('the level of a line', () => {
  it.each([
    // Plain words, in the ways of loggers.
    ['2026-11-24 03:12:00,123 ERROR [main] com.example.App - it broke', 'error'],
    ['2026-11-24T03:12:00.123Z  WARN hyper::proto: slow', 'warn'],
    ['[2026-11-24 03:12:00] [INFO] ready', 'info'],
    ['[12:00:00 ERR] Serilog says so', 'error'],
    ['INFO:root:python', 'info'],
    ['CRITICAL:root:python', 'fatal'],
    ['warn: Microsoft.Hosting[0]', 'warn'],
    ['fail: Microsoft.Hosting[0]', 'error'],
    ['error: unknown option', 'error'],
    ['npm ERR! code 1', 'error'],
    // Syslog, klog, nginx, Apache, MySQL, Redis, PostgreSQL.
    ['<11>Nov 24 03:12:00 db-1 cron[7]: no', 'error'],
    ['<190>Nov 24 03:12:00 db-1 haproxy[7]: ok', 'info'],
    ['W1124 03:12:00.123456       1 reflector.go:324] watch ended', 'warn'],
    ['F1124 03:12:00.123456       1 main.go:1] dead', 'fatal'],
    ['2026/11/24 03:12:00 [error] 31#31: *1 open() failed', 'error'],
    ['[Tue Nov 24 03:12:00.000 2026] [core:warn] [pid 9] x', 'warn'],
    ['2026-11-24T03:12:00.123456Z 0 [Warning] [MY-010068] [Server] CA certificate', 'warn'],
    ['1:M 24 Nov 2026 03:12:00.123 * Ready to accept connections', 'info'],
    ['1:M 24 Nov 2026 03:12:00.123 # Background saving error', 'warn'],
    ['2026-11-24 03:12:00.123 UTC [77] LOG:  checkpoint complete', 'info'],
    ['2026-11-24 03:12:00.123 UTC [77] ada@shop FATAL:  too many clients', 'fatal'],
    // What programs say when they die.
    ['panic: runtime error: index out of range', 'fatal'],
    ['Exception in thread "main" java.lang.IllegalStateException: no', 'error'],
    ['Traceback (most recent call last):', 'error'],
    ['java.lang.NullPointerException: no', 'error'],
    // Web servers.
    ['203.0.113.7 - - [24/Nov/2026:03:12:00 +0000] "GET /x HTTP/1.1" 502 157 "-" "curl"', 'error'],
    ['203.0.113.7 - - [24/Nov/2026:03:12:00 +0000] "GET /x HTTP/1.1" 404 157 "-" "curl"', 'warn'],
    ['203.0.113.7 - - [24/Nov/2026:03:12:00 +0000] "GET /x HTTP/1.1" 200 157', 'info'],
    [`203.0.113.7 - - [24/Nov/2026:03:12:00 +0000] "GET /${'x'.repeat(900)} HTTP/1.1" 500 157 "-" "curl"`, 'error'],
    // JSON and logfmt.
    ['{"level":"error","msg":"it broke"}', 'error'],
    ['{"level":50,"msg":"pino"}', 'error'],
    ['{"level":4,"short_message":"GELF"}', 'warn'],
    ['{"log":{"level":"debug"},"message":"ECS"}', 'debug'],
    ['{"severity":"CRITICAL","message":"GCP"}', 'fatal'],
    ['{"message":"ERROR: in the message"}', 'error'],
    ['time=2026-11-24T03:12:00Z level=warning msg="took long" took=3s', 'warn'],
    ['web-1 | ts=1 level=info x', 'info'],
  ])('%s', (line, level) => {
    expect(levelOf(line)).toBe(level);
  });

  it.each([
    'GET /error/ERRORS.html',
    'the information desk warned nobody',
    'an error of judgement',
    'started in 0.3 s',
    '',
    '   ',
    '{"level":{"deep":1}}',
    '{"level":"purple"}',
  ])('is none where it says none: %s', (line) => {
    expect(levelOf(line)).toBeNull();
  });

  it('is found by name or number, and not by what every object has', () => {
    expect([levelOfName('ERROR'), levelOfName(' Warn '), levelOfName('3'), levelOfName(35), levelOfName('x')]).toEqual([
      'error',
      'warn',
      'error',
      'info',
      null,
    ]);
    expect([levelOfName('constructor'), levelOfName('__proto__'), levelOfName(Number.NaN), levelOfName(-1)]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  // Each would take minutes, or for ever, where a pattern goes back and forth: the test's own limit is the measure.
  it('is found as quickly in lines that are made to be slow', () => {
    const hostile = [
      'a'.repeat(65_536),
      '['.repeat(65_536),
      ' '.repeat(65_536),
      `${'a=b '.repeat(16_000)}"`,
      `${'level='.repeat(10_000)}`,
      `"${'\\'.repeat(65_535)}`,
      `{${'"a":{'.repeat(10_000)}${'}'.repeat(10_001)}`,
      `${'['.repeat(32_768)}${']'.repeat(32_768)}`,
      `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
      `${'a.'.repeat(30_000)}Exception`,
      `${'\u202e\u0000\u001b['.repeat(10_000)}`,
      '2026-11-24 03:12:00 '.repeat(3_000),
    ];
    for (const line of hostile) for (let time = 0; time < 20; time += 1) levelOf(line);
    expect(hostile.map((line) => levelOf(line)).filter((level) => level === 'fatal')).toEqual([]);
  });
});

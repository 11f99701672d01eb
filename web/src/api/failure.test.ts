import { describe, expect, it } from 'vitest';
import { Failure, failureOf } from './failure';

function refused(...faults: [string[], string][]): Failure {
  const detail = faults.map(([loc, msg]) => ({ loc, msg, type: 'value_error' }));
  return Failure.of(new Response(null, { status: 422 }), { detail, status_code: 422 });
}

describe('faults of a request', () => {
  it('are found by their field, however deep', () => {
    const failure = refused([['body', 'name'], 'field required'], [['body', 'settings', 'url'], 'not a URL']);

    expect(failure.of('name')).toBe('Fill this in.');
    expect(failure.of('settings', 'url')).toBe('Not a URL.');
    expect(failure.of('settings')).toBe('Not a URL.');
    expect(failure.of('host')).toBeNull();
  });

  it('are said as a person says them', () => {
    const failure = refused(
      [['body', 'password'], 'ensure this value has at least 8 characters'],
      [['body', 'port'], 'ensure this value is less than or equal to 65535'],
      [['body', 'host'], 'not a host name or an address'],
    );

    expect(failure.of('password')).toBe('Use at least 8 characters.');
    expect(failure.of('port')).toBe('At most 65535.');
    expect(failure.of('host')).toBe('Not a host name or an address.');
  });

  it('that no field shows are not lost', () => {
    const failure = refused([['body', 'name'], 'field required'], [['query', 'limit'], 'too many']);

    expect(failure.besides(['name']).map((fault) => fault.msg)).toEqual(['too many']);
  });
});

describe('a failure', () => {
  it('says what the service said', () => {
    const failure = Failure.of(new Response(null, { status: 400, headers: { 'x-request-id': 'r1' } }), {
      detail: 'the agent is offline',
      status_code: 400,
      code: 'agent_offline',
    });

    expect(failure).toMatchObject({ status: 400, code: 'agent_offline', requestId: 'r1', isPassing: false });
    expect(failure.message).toBe('The agent is offline.');
  });

  it('says something where the service said nothing that is understood', () => {
    expect(Failure.of(new Response(null, { status: 502 }), '<html>').message).toBe('The service answered 502.');
  });

  it('passes where there was no answer', () => {
    expect(failureOf(new TypeError('fetch failed')).isPassing).toBe(true);
  });
});

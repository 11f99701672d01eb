// @vitest-environment jsdom
import { expect, test } from 'vitest';
import { Failure } from '../api/failure';
import { refusedPasskey } from './refused';

const page = { hostname: '127.0.0.1', port: '8000' };

function message(name: string, at = page): string {
  return (refusedPasskey(new DOMException('', name), at) as Failure).message;
}

test('each refusal says what to do', () => {
  expect(message('NotAllowedError')).toMatch(/try again/i);
  expect(message('InvalidStateError')).toMatch(/already/);
  expect(message('SecurityError')).toContain('http://localhost:8000');
  expect(message('SecurityError', { hostname: 'box.example.com', port: '' })).not.toContain('localhost');
  expect(message('NotReadableError')).not.toBe('');
});

test('what the service answered stays as it is', () => {
  const failure = new Failure(401, 'invalid_credentials', 'No.');

  expect(refusedPasskey(failure)).toBe(failure);
});

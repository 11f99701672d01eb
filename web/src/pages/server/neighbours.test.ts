import { expect, test } from 'vitest';
import { neighbourOf } from './neighbours';

const servers = ['web-10', 'db', 'web-9'].map((name) => ({ id: name, name }));

test('the next and the one before, by name, round the end', () => {
  expect(neighbourOf(servers, 'db', 1)?.id).toBe('web-9');
  expect(neighbourOf(servers, 'web-9', 1)?.id).toBe('web-10');
  expect(neighbourOf(servers, 'web-10', 1)?.id).toBe('db');
  expect(neighbourOf(servers, 'db', -1)?.id).toBe('web-10');
});

test('one alone has no neighbour, and neither has a stranger', () => {
  expect(neighbourOf(servers.slice(0, 1), 'web-10', 1)).toBeNull();
  expect(neighbourOf(servers, 'gone', 1)).toBeNull();
});

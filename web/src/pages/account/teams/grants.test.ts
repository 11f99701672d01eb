import { expect, test } from 'vitest';
import type { Grant } from '../../../api/types';
import { mayEnd, sorted } from './grants';

const grant = (id: string, owner: string, giver: string | null, user: string | null) =>
  ({ id, owner: { id: owner }, giver: giver && { id: giver }, subject: { user_id: user } }) as unknown as Grant;

const grants = [
  grant('of my server', 'me', 'manager', 'bob'),
  grant('by me as manager', 'ada', 'me', 'bob'),
  grant('to me', 'ada', 'ada', 'me'),
  grant('to my team', 'ada', null, null),
];

test('grants are those that one gave, and those that reach one', () => {
  const { given, received } = sorted(grants, 'me');

  expect(given.map(({ id }) => id)).toEqual(['of my server', 'by me as manager']);
  expect(received.map(({ id }) => id)).toEqual(['to me', 'to my team']);
});

test('what reaches one through a team is not ones own to end', () => {
  expect(grants.filter((one) => mayEnd(one, 'me')).map(({ id }) => id)).toEqual([
    'of my server',
    'by me as manager',
    'to me',
  ]);
});

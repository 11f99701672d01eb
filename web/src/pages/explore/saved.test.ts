// @vitest-environment jsdom
import { expect, test } from 'vitest';
import { toShareWith } from './saved';
import type { SharedWith, View } from './types';

function view(id: string, shared_with: SharedWith, mine = true): View {
  return { id, shared_with, mine } as View;
}

test('a shared dashboard shares the own views that fewer people see', () => {
  const views = [
    view('private', 'nobody'),
    view('for administrators', 'administrators'),
    view('for all', 'everyone'),
    view('of somebody else', 'administrators', false),
  ];
  const shared = (audience: SharedWith) => toShareWith(audience, views).map((one) => one.id);

  expect(shared('nobody')).toEqual([]);
  expect(shared('administrators')).toEqual(['private']);
  expect(shared('everyone')).toEqual(['private', 'for administrators']);
});

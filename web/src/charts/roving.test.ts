// @vitest-environment jsdom
import { expect, it } from 'vitest';
import { roving } from './roving';

function bar(count: number): HTMLElement {
  const made = document.createElement('div');
  made.append(...Array.from({ length: count }, () => document.createElement('button')));
  document.body.replaceChildren(made);
  return made;
}

const stops = (of: HTMLElement) => [...of.querySelectorAll('button')].map((button) => button.tabIndex);

it('is one stop for the Tab key, and arrows move from there', () => {
  const buttons = bar(3);
  const leave = roving(buttons);
  expect(stops(buttons)).toEqual([0, -1, -1]);

  buttons.querySelector('button')?.focus();
  document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));

  expect(document.activeElement).toBe(buttons.children[1]);
  expect(stops(buttons)).toEqual([-1, 0, -1]);
  leave();
});

it('stays at the first and the last, and follows what comes and goes', async () => {
  const buttons = bar(2);
  const leave = roving(buttons);
  buttons.querySelector('button')?.focus();
  document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
  expect(document.activeElement).toBe(buttons.children[0]);

  buttons.children[0]?.remove();
  await Promise.resolve();

  expect(stops(buttons)).toEqual([0]);
  leave();
});

// @vitest-environment jsdom
import { afterEach, expect, it } from 'vitest';
import { keepRowFocus } from './rowFocus';

let stop = () => undefined as void;

afterEach(() => {
  stop();
  document.body.replaceChildren();
});

/** A section with a list of the given rows: each has a button to change it, and one to delete it. */
function listOf(...rows: string[]) {
  const buttons = (row: string) => `<button id="edit-${row}"></button><i><button id="delete-${row}"></button></i>`;
  const items = rows.map((row) => `<li id="${row}"><p>${row}</p>${buttons(row)}</li>`).join('');
  document.body.innerHTML = `<section><h2>List</h2><div><button id="add"></button><ul>${items}</ul></div></section>`;
  const root = document.querySelector('div');
  if (root) stop = keepRowFocus(root);
}

const find = (selector: string) => document.querySelector<HTMLElement>(selector);
const focused = () => document.activeElement?.id || document.activeElement?.tagName;
const later = () => new Promise((done) => setTimeout(done));

async function remove(selector: string) {
  find(selector)?.remove();
  await later();
}

it('the same button of the next row has the focus, and of the one before where there is none', async () => {
  listOf('a', 'b', 'c');
  find('#delete-b')?.focus();

  await remove('#b');
  expect(focused()).toBe('delete-c');
  await remove('#c');
  expect(focused()).toBe('delete-a');
});

it('the heading of the list has it once the last row is gone, with the list or without', async () => {
  for (const gone of ['#a', 'ul']) {
    listOf('a');
    find('#delete-a')?.focus();

    await remove(gone);

    expect(focused()).toBe('H2');
    stop();
  }
});

it('rows that are gone as well are passed over, and so are those without a button', async () => {
  listOf('a', 'b', 'c', 'd');
  find('#c')?.replaceChildren('nothing to do');
  find('#edit-a')?.focus();
  find('#b')?.remove();

  await remove('#a');

  expect(focused()).toBe('edit-d');
});

it('another button of the row takes the place of one that it does not have', async () => {
  listOf('a', 'b');
  find('#b i')?.remove();
  find('#delete-a')?.focus();

  await remove('#a');

  expect(focused()).toBe('edit-b');
});

it('a row in a row passes it on to the rows around', async () => {
  const card = (name: string) =>
    `<section data-row id="${name}"><h3>${name}</h3><ul><li><button id="in-${name}"></button></li></ul></section>`;
  document.body.innerHTML = `<section><h2>Teams</h2><div>${card('a')}${card('b')}</div></section>`;
  const root = find('div');
  if (root) stop = keepRowFocus(root);
  find('#in-a')?.focus();

  await remove('#a');
  expect(focused()).toBe('in-b');
  await remove('#b ul');
  expect(focused()).toBe('H3');
});

it('a row that stays without its button has the focus on its first one', async () => {
  listOf('a', 'b');
  find('#delete-a')?.insertAdjacentHTML('beforebegin', '<button id="pause-a"></button>');
  find('#pause-a')?.focus();

  await remove('#pause-a');

  expect(focused()).toBe('edit-a');
});

it('the heading has it once a button that stands in no row is gone', async () => {
  listOf('a');
  find('#add')?.focus();

  await remove('#add');

  expect(focused()).toBe('H2');
});

it('a key that is held down presses a button once', () => {
  listOf('a');
  const isPressed = (repeat: boolean) =>
    find('#delete-a')?.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', repeat, bubbles: true, cancelable: true }),
    );

  expect([isPressed(false), isPressed(true)]).toEqual([true, false]);
});

it('a focus that is elsewhere stays there, and one that was given up does not come back', async () => {
  listOf('a', 'b', 'c');
  find('#delete-a')?.focus();
  find('#add')?.focus();
  await remove('#a');
  expect(focused()).toBe('add');

  find('#delete-b')?.focus();
  find('#delete-b')?.blur();
  await later();
  await remove('#b');
  expect(focused()).toBe('BODY');
});

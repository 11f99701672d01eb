// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { expect, it, vi } from 'vitest';
import type { AccountEntry } from '../../../api/types';
import { press, statesOf } from '../../testing';
import UserTable from './UserTable.svelte';

const user = (id: string) =>
  ({
    id,
    username: id,
    full_name: '',
    email: `${id}@example.com`,
    is_admin: false,
    disabled: false,
    servers: 0,
    sessions: 0,
    second_factor: { totp: false, passkeys: 0 },
    last_login_at: null,
  }) as unknown as AccountEntry;

it('of all buttons the one that was pressed is busy and keeps the focus', async () => {
  let busy = $state(false);
  const [promote, disable] = [vi.fn(() => void (busy = true)), vi.fn(() => void (busy = true))];
  const props = {
    users: [user('bob'), user('eve')],
    own: 'me',
    promote,
    disable,
    remove: () => undefined,
    get busy() {
      return busy;
    },
  };
  const shown = mount(UserTable, { target: document.body, props });
  const buttons = [...document.querySelectorAll('button')];
  const others = (count: number) => Array<string>(count).fill('disabled');

  press(buttons[0]);
  press(buttons[0]);
  expect(statesOf(buttons)).toEqual(['busy', ...others(5)]);
  expect(promote).toHaveBeenCalledTimes(1);
  busy = false;
  flushSync();
  expect(statesOf(buttons)).toEqual(Array(6).fill('ready'));
  expect(document.activeElement).toBe(buttons[0]);

  press(buttons[4]);
  expect(statesOf(buttons)).toEqual([...others(4), 'busy', ...others(1)]);
  expect(disable).toHaveBeenCalledTimes(1);
  await unmount(shown);
});

// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import type { AlertDetail } from '../../api/types';
import { waiting } from '../testing';
import Notes from './Notes.svelte';

afterEach(() => void vi.restoreAllMocks());

it('a note is put away when it is saved, and what was written by then is not', async () => {
  const alert = { id: 'one', metric_type: 'cpu', timeline: [] } as unknown as AlertDetail;
  const noted = vi.fn();
  const shown = mount(Notes, { target: document.body, props: { alert, refused: null, noted } });
  const field = document.querySelector('textarea');
  const write = (text: string) => {
    if (field) field.value = text;
    field?.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
  };
  const save = async (next?: string) => {
    const { answer, end } = waiting();
    vi.spyOn(api, 'POST').mockReturnValueOnce(answer);
    noted.mockClear();
    document.querySelector('form')?.requestSubmit();
    if (next) write(next);
    end(alert);
    await vi.waitFor(() => expect(noted).toHaveBeenCalledTimes(1));
    flushSync();
  };

  write('restarted it');
  await save('and it stayed up');
  expect(field?.value).toBe('and it stayed up');

  await save();
  expect(field?.value).toBe('');
  // The button keeps the focus, and adds nothing.
  const add = document.querySelector<HTMLButtonElement>('button[type="submit"]');
  expect([add?.disabled, add?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  await unmount(shown);
});

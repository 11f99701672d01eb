// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Alert } from '../../api/types';
import { press, statesOf, waiting } from '../testing';
import Choosable from './Choosable.svelte';

afterEach(() => void vi.restoreAllMocks());

const alert = (id: string) => ({
  id,
  server_id: 's1',
  status: 'active',
  severity: 'warning',
  metric_type: 'cpu',
  comparison: 'gt',
  threshold_value: 90,
  peak_value: 97,
  message: 'CPU is 97 %',
  triggered_at: '2026-11-21T03:12:00Z',
  resolved_at: null,
});

it('only what was acknowledged is chosen no longer', async () => {
  const alerts = ['first', 'second', 'third'].map(alert) as unknown as Alert[];
  const shown = mount(Choosable, { target: document.body, props: { alerts, ofOneServer: true } });
  const boxes = () => [...document.querySelectorAll<HTMLInputElement>('tbody input')];
  const [acknowledge, resolve] = document.querySelectorAll('button');
  const [first, second] = [waiting(), waiting()];
  const asked = vi.spyOn(api, 'POST').mockReturnValueOnce(first.answer).mockReturnValueOnce(second.answer);

  press(boxes()[0]);
  press(boxes()[1]);
  press(acknowledge);
  press(boxes()[2]);
  // One at a time: what was pressed now would be forgotten.
  expect(statesOf([acknowledge, resolve])).toEqual(['busy', 'disabled']);
  first.end({ id: 'first' });
  second.end(Failure.unreachable());
  await vi.waitFor(() => expect(statesOf([acknowledge, resolve])).toEqual(['ready', 'ready']));

  expect(asked).toHaveBeenCalledTimes(2);
  expect(boxes().map((box) => box.checked)).toEqual([false, true, true]);
  await unmount(shown);
});

it('the button whose alerts are done keeps the focus, and does nothing without a choice', async () => {
  const alerts = [alert('first')] as unknown as Alert[];
  const shown = mount(Choosable, { target: document.body, props: { alerts, ofOneServer: true } });
  const box = document.querySelector<HTMLInputElement>('tbody input');
  const [acknowledge] = document.querySelectorAll('button');
  const { answer, end } = waiting();
  const asked = vi.spyOn(api, 'POST').mockReturnValue(answer);

  press(box);
  press(acknowledge);
  end({ id: 'first' });
  await vi.waitFor(() => expect(box?.checked).toBe(false));

  expect([acknowledge?.disabled, acknowledge?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  expect(document.activeElement).toBe(acknowledge);
  press(acknowledge);
  expect(asked).toHaveBeenCalledTimes(1);
  await unmount(shown);
});

// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { Failure } from '../../api/failure';
import { toasts } from '../../ui/toasts.svelte';
import { answered, press, waiting } from '../testing';
import { ThresholdList } from './thresholds.svelte';
import ThresholdTable from './ThresholdTable.svelte';

afterEach(() => void vi.restoreAllMocks());

it('a switch whose change was refused says what the rule is, and keeps the focus', async () => {
  const rule = {
    id: 'one',
    enabled: false,
    metric_type: 'cpu',
    comparison: 'gt',
    value: 90,
    clear_value: null,
    duration_seconds: 60,
    severity: 'warning',
    scope: { all: true },
  };
  vi.spyOn(api, 'GET').mockImplementation((async () => answered([{ ...rule }])) as never);
  const change = waiting();
  const asked = vi.spyOn(api, 'PUT').mockReturnValue(change.answer);
  const failed = vi.spyOn(toasts, 'failed');
  const list = new ThresholdList();
  await vi.waitFor(() => expect(list.all.value).toBeDefined());
  const props = { list, shown: list.all.value ?? [], edit: () => undefined };
  const shown = mount(ThresholdTable, { target: document.body, props });
  const box = document.querySelector<HTMLInputElement>('input');

  press(box);
  expect([box?.disabled, box?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  // Two changes under way could arrive in either order.
  press(box);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(box?.checked).toBe(true);
  change.end(Failure.unreachable());
  await vi.waitFor(() => expect(failed).toHaveBeenCalledTimes(1));
  await new Promise((resolve) => setTimeout(resolve));
  flushSync();

  expect(box?.checked).toBe(false);
  expect([box?.disabled, box?.hasAttribute('aria-disabled')]).toEqual([false, false]);
  expect(document.activeElement).toBe(box);
  await unmount(shown);
});

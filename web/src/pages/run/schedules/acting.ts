// What is done to a schedule, from its page and from the list.
import * as m from '#messages/schedules';
import { api, take } from '../../../api/client';
import { failureOf } from '../../../api/failure';
import type { ScheduleSummary } from '../../../api/types';
import { confirm } from '../../../ui/confirm.svelte';
import { toasts } from '../../../ui/toasts.svelte';

type Named = Pick<ScheduleSummary, 'id' | 'name' | 'enabled'>;

const at = (id: string) => ({ params: { path: { id } } });

/** Pauses it, or lets it run again. */
export async function turn({ id, name, enabled }: Named): Promise<void> {
  try {
    await take(api.PUT('/api/v1/schedules/{id}', { ...at(id), body: { enabled: !enabled } }));
    toasts.done(enabled ? m.pausedDone({ name }) : m.resumedDone({ name }));
  } catch (error) {
    toasts.failed(failureOf(error).message);
  }
}

/** Asks whether it is to be deleted. */
export function asksToRemove({ name }: Named): Promise<boolean> {
  return confirm.ask({ title: m.removeTitle({ name }), text: m.removeText(), action: m.remove(), danger: true });
}

/** Deletes it; whether it is gone. */
export async function remove({ id, name }: Named): Promise<boolean> {
  try {
    await take(api.DELETE('/api/v1/schedules/{id}', at(id)));
  } catch (error) {
    const failure = failureOf(error);
    if (failure.status !== 404) {
      toasts.failed(failure.message);
      return false;
    }
  }
  toasts.done(m.removedDone({ name }));
  return true;
}

import * as m from '#messages/alertList';
import { api, take } from '../../api/client';
import { failureOf } from '../../api/failure';
import type { Alert } from '../../api/types';
import { toasts } from '../../ui/toasts.svelte';

export type Act = 'acknowledge' | 'resolve';

const DONE = { acknowledge: m.acknowledged, resolve: m.resolved };

/** Acknowledges or resolves alerts, one after the other, and says what came of it. Returns those that it changed. */
export async function act(how: Act, ids: string[]): Promise<Alert[]> {
  const done: Alert[] = [];
  for (const id of ids) {
    try {
      done.push(await one(how, id));
    } catch (error) {
      toasts.failed(failureOf(error).message);
      break;
    }
  }
  if (done.length) toasts.done(DONE[how]({ count: done.length }));
  return done;
}

function one(how: Act, id: string): Promise<Alert> {
  const params = { path: { id } };
  return how === 'acknowledge'
    ? take(api.POST('/api/v1/alerts/{id}/acknowledge', { params }))
    : take(api.POST('/api/v1/alerts/{id}/resolve', { params }));
}

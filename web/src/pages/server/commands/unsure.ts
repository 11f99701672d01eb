import type { Failure } from '../../../api/failure';

/** Whether a command may run although its answer was lost: on its way, or by a proxy. What the service answers has a code. */
export function mayHaveStarted(failure: Failure | null): boolean {
  if (!failure) return false;
  return failure.code === 'unreachable' || (failure.status >= 500 && failure.code === '');
}

import { fleet } from '../../live/fleet.svelte';
import { Stack } from './totals';

/** The traffic of all servers, for as long as somebody is signed in: who leaves the fleet and comes back finds it again. */
export const stack = new Stack();
fleet.onReset(() => stack.clear());

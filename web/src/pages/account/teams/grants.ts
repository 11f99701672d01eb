import type { Grant } from '../../../api/types';

export interface Sorted {
  /** On the caller's servers, or by them on servers that they manage. */
  given: Grant[];
  /** To the caller, or to a team of theirs. */
  received: Grant[];
}

/** Grants by what they are for the caller. Each is listed once. */
export function sorted(grants: readonly Grant[], own: string): Sorted {
  const isGiven = (grant: Grant) => grant.owner.id === own || grant.giver?.id === own;
  return { given: grants.filter(isGiven), received: grants.filter((grant) => !isGiven(grant)) };
}

/** Whether the caller may end it: on their own servers, what they gave, and what they have themselves. */
export function mayEnd(grant: Grant, own: string): boolean {
  return grant.owner.id === own || grant.giver?.id === own || grant.subject.user_id === own;
}

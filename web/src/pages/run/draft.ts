/** What the form begins with, when another page fills it: too long for an address. */
export interface Draft {
  command: string;
  serverIds: string[];
  timeoutSeconds: number;
  concurrency: number;
  stopOnFailure: boolean;
}

let waiting: Draft | null = null;

export function leaveDraft(draft: Draft): void {
  waiting = draft;
}

/** What was left, once. */
export function takeDraft(): Draft | null {
  const draft = waiting;
  waiting = null;
  return draft;
}

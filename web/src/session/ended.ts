/**
 * Why nobody is signed in any more. `untold`: signed out here, but the service could not be notified, so that its cookie
 * still works.
 */
export type Ended = 'by-hand' | 'untold' | 'expired' | 'elsewhere' | 'reused';

/** What a refused refresh means; null where nobody was signed in to begin with. */
export function endOf(code: string, wasSignedIn: boolean): Ended | null {
  switch (code) {
    case 'token_revoked':
      return 'elsewhere';
    case 'token_reused':
      return 'reused';
    case 'token_expired':
      return 'expired';
    default:
      return wasSignedIn ? 'expired' : null;
  }
}

/** Whether it is news to the person at this page. */
export function isByItself(ended: Ended): boolean {
  return ended !== 'by-hand';
}

/**
 * Why nobody is signed in any more. `untold`: signed out here, but the service could not be told, so that its cookie
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

/** Whether it is news to whoever sits there. */
export function isByItself(ended: Ended): boolean {
  return ended !== 'by-hand';
}

export const endWords: Record<Ended, string> = {
  'by-hand': 'You are signed out.',
  untold:
    'You are signed out on this page, but the service did not answer. Once it does, reload this page and sign out again.',
  expired: 'Your sign-in has expired. Sign in again to go on where you were.',
  elsewhere: 'This sign-in was ended from elsewhere, or the password was changed. Sign in again to go on.',
  reused: 'This sign-in was ended to be safe: something tried to use it a second time. Sign in again to go on.',
};

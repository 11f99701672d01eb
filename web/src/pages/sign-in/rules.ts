// What the service asks of an account, said before it has to.
import * as m from '#messages/signIn';

export interface Account {
  email: string;
  username: string;
  full_name: string;
  password: string;
  password_confirm: string;
}

export type AccountFaults = Partial<Record<keyof Account, string>>;

const MIN_PASSWORD = 8;
const MAX_PASSWORD = 128;

export function usernameFault(text: string): string | null {
  const name = text.trim();
  if (!name) return m.chooseUsername();
  if (!/^[A-Za-z0-9_.-]+$/.test(name)) return m.usernameLetters();
  if (name.length < 3) return m.atLeast({ count: 3 });
  if (name.length > 64) return m.atMost({ count: 64 });
  return null;
}

export function emailFault(text: string): string | null {
  const address = text.trim();
  if (!address) return m.giveEmail();
  if (!/^[^\s@]+@[^\s@]+$/.test(address)) return m.noEmail();
  if (address.length > 254) return m.atMost({ count: 254 });
  return null;
}

/** Characters are counted as the service counts them: a sign outside of the usual ones is one, not two. */
export function passwordFault(password: string): string | null {
  const length = [...password].length;
  if (length === 0) return m.choosePassword();
  if (length < MIN_PASSWORD) return m.atLeastSoFar({ count: MIN_PASSWORD, length });
  if (length > MAX_PASSWORD) return m.atMostSoFar({ count: MAX_PASSWORD, length });
  return null;
}

export function confirmFault(password: string, again: string): string | null {
  if (!again) return m.confirmPassword();
  return password === again ? null : m.unlike();
}

/** The code that the first account needs where other machines can reach the service. Whether it is right is the service's to say. */
export function setupCodeFault(text: string): string | null {
  return text.trim() ? null : m.giveSetupCode();
}

/** Everything that is wrong with an account to be. */
export function accountFaults(account: Account): AccountFaults {
  const found: [keyof Account, string | null][] = [
    ['email', emailFault(account.email)],
    ['username', usernameFault(account.username)],
    ['full_name', [...account.full_name].length > 200 ? m.atMost({ count: 200 }) : null],
    ['password', passwordFault(account.password)],
    ['password_confirm', confirmFault(account.password, account.password_confirm)],
  ];
  const faults: AccountFaults = {};
  for (const [field, fault] of found) if (fault) faults[field] = fault;
  return faults;
}

const NOTORIOUS = ['password', 'passwort', 'qwert', 'letmein', 'welcome', 'changeme', 'iloveyou', 'signalbox', 'admin'];
const ROWS = ['01234567890', '09876543210', 'abcdefghijklmnopqrstuvwxyz', 'qwertyuiop', 'qwertzuiop', 'asdfghjkl'];

/** A sentence on what would help a password, or that it is fine. `known` is what others know of this person. */
export function passwordHint(password: string, known: string[] = []): string {
  if (!password) return m.passwordTip();
  const text = password.toLowerCase();
  const personal = known.map((word) => word.trim().toLowerCase()).filter((word) => word.length >= 3);
  if ([...password].length < MIN_PASSWORD) return m.atLeast({ count: MIN_PASSWORD });
  if (new Set(text).size <= 3) return m.passwordRepeats();
  if (personal.some((word) => text.includes(word))) return m.passwordPersonal();
  if (ROWS.some((row) => row.includes(text))) return m.passwordRow();
  if (password.length < 16 && NOTORIOUS.some((word) => text.includes(word))) return m.passwordCommon();
  if (password.length < 12) return m.passwordFair();
  return m.passwordGood();
}

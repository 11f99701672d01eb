// What the service asks of an account, said before it has to.

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
  if (!name) return 'Choose a user name.';
  if (!/^[A-Za-z0-9_.-]+$/.test(name)) return 'Only letters, digits, dots, hyphens and underscores.';
  if (name.length < 3) return 'At least 3 characters.';
  if (name.length > 64) return 'At most 64 characters.';
  return null;
}

export function emailFault(text: string): string | null {
  const address = text.trim();
  if (!address) return 'Give an e-mail address.';
  if (!/^[^\s@]+@[^\s@]+$/.test(address)) return 'This is no e-mail address.';
  if (address.length > 254) return 'At most 254 characters.';
  return null;
}

/** Characters are counted as the service counts them: a sign outside of the usual ones is one, not two. */
export function passwordFault(password: string): string | null {
  const length = [...password].length;
  if (length === 0) return 'Choose a password.';
  if (length < MIN_PASSWORD) return `At least ${MIN_PASSWORD} characters; these are ${length}.`;
  if (length > MAX_PASSWORD) return `At most ${MAX_PASSWORD} characters; these are ${length}.`;
  return null;
}

export function confirmFault(password: string, again: string): string | null {
  if (!again) return 'Type the password once more.';
  return password === again ? null : 'This is not the same password.';
}

/** The code that the first account needs where other machines can reach the service. Whether it is right is the service's to say. */
export function setupCodeFault(text: string): string | null {
  return text.trim() ? null : "Enter the setup code from the service's log.";
}

/** Everything that is wrong with an account to be. */
export function accountFaults(account: Account): AccountFaults {
  const found: [keyof Account, string | null][] = [
    ['email', emailFault(account.email)],
    ['username', usernameFault(account.username)],
    ['full_name', [...account.full_name].length > 200 ? 'At most 200 characters.' : null],
    ['password', passwordFault(account.password)],
    ['password_confirm', confirmFault(account.password, account.password_confirm)],
  ];
  const faults: AccountFaults = {};
  for (const [field, fault] of found) if (fault) faults[field] = fault;
  return faults;
}

const NOTORIOUS = ['password', 'passwort', 'qwert', 'letmein', 'welcome', 'changeme', 'iloveyou', 'signalbox', 'admin'];
const ROWS = ['01234567890', '09876543210', 'abcdefghijklmnopqrstuvwxyz', 'qwertyuiop', 'qwertzuiop', 'asdfghjkl'];

/** What would help a password, in a sentence; what is fine is told so. `known` is what others know of this person. */
export function passwordHint(password: string, known: string[] = []): string {
  if (!password) return 'At least 8 characters. A few words that have nothing to do with each other are a good one.';
  const text = password.toLowerCase();
  const personal = known.map((word) => word.trim().toLowerCase()).filter((word) => word.length >= 3);
  if ([...password].length < MIN_PASSWORD) return 'At least 8 characters.';
  if (new Set(text).size <= 3) return 'Easy to guess: the same characters again and again.';
  if (personal.some((word) => text.includes(word))) return 'Easy to guess: it holds your name or address.';
  if (ROWS.some((row) => row.includes(text))) return 'Easy to guess: a row of keys.';
  if (password.length < 16 && NOTORIOUS.some((word) => text.includes(word)))
    return 'Easy to guess: many people use a word like this.';
  if (password.length < 12) return 'Good enough. Longer is better.';
  return 'A good password.';
}

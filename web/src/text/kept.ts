// What was chosen in this browser. Its storage may be switched off: a choice holds for the page then.

export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a choice; null forgets it. */
export function keep(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // See above.
  }
}

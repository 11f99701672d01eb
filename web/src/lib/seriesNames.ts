// Names of series in addresses. The target of a name may have commas, and blanks at its ends. Pure.

/**
 * The parameter `names` of a question to the service. Of names with commas or blanks each needs a parameter of its own: the client
 * makes these of a list, which its types do not know.
 */
export function namesAsked(names: readonly string[]): string {
  const isPlain = names.every((name) => !name.includes(',') && name === name.trim());
  return isPlain ? names.join(',') : (names as unknown as string);
}

/** What an address of a page says of some names. */
export function namesWritten(names: readonly string[]): string {
  return names.map((name) => name.replace(/[,%]|^\s+|\s+$/g, encodeURIComponent)).join(',');
}

/** The names that an address of a page has. */
export function namesRead(text: string): string[] {
  return text
    .split(',')
    .map((name) => decoded(name.trim()))
    .filter(Boolean);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

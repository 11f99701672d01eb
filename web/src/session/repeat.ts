// An answer to a refresh may get lost, and with it the only token that still works. The service gives the same one to who repeats
// the request within ten seconds; later it takes the spent token for a stolen one, and ends the session.

/** So long an answer may take before the request is repeated: early enough for a repetition that takes seconds, too. */
export const REPEAT_MS = 5_000;

/** The answer to a request that was just made, or to its repetition: at once if it got lost, or when it takes too long. */
export async function orRepeated<T>(first: Promise<T>, repeat: () => Promise<T>, patienceMs = REPEAT_MS): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((done) => (timer = setTimeout(() => done(false), patienceMs)));
  const hasCome = await Promise.race([first.then(() => true).catch(() => false), late]);
  clearTimeout(timer);
  if (hasCome) return first;
  const second = repeat();
  // Where neither comes, the second one says why.
  return Promise.any([first, second]).catch(() => second);
}

/** A shell that is left ends a moment later, and its recording with it. A busy machine takes longer. */
const LOOKS_MS = [2_000, 6_000, 15_000];

/** Looks at each of these times until there is what was looked for, or until what this returns is called. */
export function lookAgain(look: () => Promise<boolean>): () => void {
  const timers = LOOKS_MS.map((after) => setTimeout(() => void look().then((isThere) => isThere && stop()), after));
  const stop = () => timers.forEach(clearTimeout);
  return stop;
}

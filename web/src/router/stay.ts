import { router } from './router.svelte';

/**
 * Remembers what is shown: the path, and these parts of the query. Tells whether it still is, for what leads elsewhere once
 * an answer is there: who has left by then stays where they are.
 */
export function staying(...parts: string[]): () => boolean {
  const shown = () => JSON.stringify([router.path, ...parts.map((part) => router.query.get(part))]);
  const then = shown();
  return () => shown() === then;
}

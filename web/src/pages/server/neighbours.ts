/** The server before or after another in the order of their names, round the end. Null where there is no other. */
export function neighbourOf<T extends { id: string; name: string }>(
  servers: readonly T[],
  id: string,
  by: -1 | 1,
): T | null {
  const sorted = [...servers].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const place = sorted.findIndex((server) => server.id === id);
  if (place < 0 || sorted.length < 2) return null;
  return sorted[(place + by + sorted.length) % sorted.length] ?? null;
}

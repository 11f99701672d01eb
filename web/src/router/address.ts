/**
 * What an address that came from outside says within this service; null when it leads anywhere else. The browser's own
 * rules decide: `//host` and `/\host` are addresses of others.
 */
export function ownAddress(given: string | null, origin: string): string | null {
  if (!given?.startsWith('/') || !URL.canParse(given, origin)) return null;
  const url = new URL(given, origin);
  return url.origin === origin ? url.pathname + url.search : null;
}

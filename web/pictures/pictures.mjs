// The pictures of the README and the guides. A document may show only these, and each of them stands in docs/images.

/** The width and the height in points. */
const DESKTOP = { width: 1200, height: 750 };
const PHONE = { width: 390, height: 780 };

/** The newest 03:12 in UTC, in the middle of the nightly backup. */
function slowMinute(now = new Date()) {
  const at = new Date(now);
  at.setUTCHours(3, 12, 0, 0);
  if (at > now) at.setUTCDate(at.getUTCDate() - 1);
  return at.toISOString().replace('.000Z', 'Z');
}

/** Hours before now. */
function hoursAgo(hours) {
  return new Date(Math.floor(Date.now() / 60_000) * 60_000 - hours * 3_600_000).toISOString().replace('.000Z', 'Z');
}

/** Name, the address that it shows, and how. `known` finds what the demo has made. */
export const PICTURES = [
  {
    name: 'timeline',
    size: { width: 1440, height: 900 },
    path: (known) => `/timeline?range=24h&server=${known.server('db-primary')}&at=${slowMinute()}`,
  },
  { name: 'fleet', size: DESKTOP, path: () => '/' },
  {
    name: 'server',
    size: DESKTOP,
    dark: true,
    // The release that went wrong, and the way back.
    path: (known) => `/servers/${known.server('web-eu-1')}?from=${hoursAgo(28)}&to=${hoursAgo(25)}`,
  },
  { name: 'incident', size: DESKTOP, path: (known) => `/alerts/${known.alert('web-eu-1')}` },
  { name: 'explore', size: DESKTOP, dark: true, path: () => '/explore?s=cpu_percent&by=tag&top=6&range=7d' },
  { name: 'phone', size: PHONE, path: (known) => `/servers/${known.server('db-primary')}` },
];

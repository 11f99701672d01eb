// Recordings of terminals as an agent keeps them.

/** A recorded terminal with a long pause, a change of size, colours, and what an emulator must not do for a recording. */
export function castOf(by: string, startedAt: number): string {
  const events: [number, 'o' | 'r' | 'i' | 'm', string][] = [
    [0.4, 'o', '\u001b]0;a title\u0007\u001b]52;c;c3RvbGVu\u0007\u001b[32mada@web\u001b[0m:\u001b[34m~\u001b[0m$ '],
    [1.2, 'o', 'systemctl status payments-reconciliation-worker-blue\r\n'],
    [1.6, 'o', '\u001b[32m●\u001b[0m payments-reconciliation-worker-blue.service - Payments of the day\r\n'],
    [
      1.7,
      'o',
      '     Active: \u001b[1;31mfailed\u001b[0m (Result: exit-code) since Thu 2026-11-26; 3 h ago\r\n\u001b[c\u001b[6n',
    ],
    [2.1, 'i', 'typed'],
    [2.2, 'm', 'a marker'],
    [2.4, 'o', '\u001b]8;;https://evil.example/\u0007a link\u001b]8;;\u0007\r\n$ '],
    [302.4, 'o', 'after the pause\r\n'],
    [303.4, 'r', '120x20'],
    [304.4, 'o', 'after the resize\r\n'],
    [312.4, 'o', 'last words\r\n$ '],
  ];
  const first = { version: 2, width: 100, height: 24, timestamp: Math.floor(startedAt / 1000), by };
  return `${[first, ...events].map((line) => JSON.stringify(line)).join('\n')}\n`;
}

/** Ids of recordings. */
export const idOf = (number: number) => `019aa0b8-7d1c-7e3a-9c61-${String(number).padStart(12, '0')}`;
export const ID = idOf(100);

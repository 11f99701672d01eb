/** Keys that a phone's keyboard does not have. */
export type ScreenKey = 'Esc' | 'Tab' | '↑' | '↓' | '←' | '→' | 'Home' | 'End' | '|' | '/' | '~' | '-';

export const screenKeys: { key: ScreenKey; label: string }[] = [
  { key: 'Esc', label: 'Escape' },
  { key: 'Tab', label: 'Tab' },
  { key: '↑', label: 'Up' },
  { key: '↓', label: 'Down' },
  { key: '←', label: 'Left' },
  { key: '→', label: 'Right' },
  { key: 'Home', label: 'Home' },
  { key: 'End', label: 'End' },
  { key: '|', label: 'Pipe' },
  { key: '/', label: 'Slash' },
  { key: '~', label: 'Tilde' },
  { key: '-', label: 'Hyphen' },
];

const CURSOR: Partial<Record<ScreenKey, string>> = { '↑': 'A', '↓': 'B', '→': 'C', '←': 'D', Home: 'H', End: 'F' };

/** What a key sends. Programs that draw the whole screen ask for other arrows (`application`). */
export function sent(key: ScreenKey, application: boolean): string {
  const letter = CURSOR[key];
  if (letter) return `\x1b${application ? 'O' : '['}${letter}`;
  if (key === 'Esc') return '\x1b';
  return key === 'Tab' ? '\t' : key;
}

/** What a character becomes while Ctrl is held: `c` is 3. What has no such form stays as it is. */
export function withControl(text: string): string {
  if (text.length !== 1) return text;
  if (text === ' ') return '\0';
  if (text === '?') return '\x7f';
  const code = text.toUpperCase().charCodeAt(0);
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code & 0x1f) : text;
}

import * as m from '#messages/terminal';

/** Keys that a phone's keyboard does not have. */
export type ScreenKey = 'Esc' | 'Tab' | '↑' | '↓' | '←' | '→' | 'Home' | 'End' | '|' | '/' | '~' | '-';

/** Keys that are no words have a label. */
export const screenKeys: { key: ScreenKey; label?: () => string }[] = [
  { key: 'Esc' },
  { key: 'Tab' },
  { key: '↑', label: m.keyUp },
  { key: '↓', label: m.keyDown },
  { key: '←', label: m.keyLeft },
  { key: '→', label: m.keyRight },
  { key: 'Home' },
  { key: 'End' },
  { key: '|', label: m.keyPipe },
  { key: '/', label: m.keySlash },
  { key: '~', label: m.keyTilde },
  { key: '-', label: m.keyHyphen },
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

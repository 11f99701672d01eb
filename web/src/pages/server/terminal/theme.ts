import type { ITheme } from '@xterm/xterm';
import { colour } from '../../../lib/colour';

const LIGHT = {
  black: '#161a23',
  red: '#b3261e',
  green: '#14713d',
  yellow: '#8a5200',
  blue: '#2853cf',
  magenta: '#8a2fb0',
  cyan: '#0f6b61',
  white: '#626a7b',
  brightBlack: '#4b5363',
  brightRed: '#c93a31',
  brightGreen: '#1b8549',
  brightYellow: '#9c6208',
  brightBlue: '#3a66e0',
  brightMagenta: '#9a3fc0',
  brightCyan: '#15786d',
  brightWhite: '#161a23',
};

const DARK = {
  black: '#3c4454',
  red: '#ff9089',
  green: '#6bd596',
  yellow: '#f2bd62',
  blue: '#8aa9ff',
  magenta: '#d59bf2',
  cyan: '#5fd3c4',
  white: '#b4bbc9',
  brightBlack: '#949cad',
  brightRed: '#ffb3ae',
  brightGreen: '#93e5b4',
  brightYellow: '#f7d28f',
  brightBlue: '#a9c0ff',
  brightMagenta: '#e3bcf7',
  brightCyan: '#8ae4d8',
  brightWhite: '#ffffff',
};

/** The colours of the interface, for a terminal, which draws for itself. */
export function terminalTheme(isDark: boolean, within: Element): ITheme {
  const text = colour('--text', within);
  const ground = colour('--terminal', within);
  return {
    ...(isDark ? DARK : LIGHT),
    background: ground,
    foreground: text,
    cursor: colour('--accent', within),
    cursorAccent: ground,
    selectionBackground: isDark ? '#2d4480' : '#c3d2fb',
  };
}

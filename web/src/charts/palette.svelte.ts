import { colour } from '../lib/colour';
import { theme } from '../lib/theme.svelte';
import { SERIES, type Palette } from './colours';

function read(): Palette {
  return {
    text: colour('--text-3'),
    grid: colour('--grid'),
    surface: colour('--surface'),
    cursor: colour('--text-3'),
    series: new Map([...SERIES, '--idle-mark'].map((name) => [name, colour(name)])),
    tones: {
      ok: colour('--ok-mark'),
      warn: colour('--warn-mark'),
      bad: colour('--bad-mark'),
      idle: colour('--idle-mark'),
      accent: colour('--accent'),
    },
  };
}

let known: { isDark: boolean; palette: Palette } | null = null;

/** The colours that hold now. Read it in an effect or a derived value: it changes with the theme. */
export function palette(): Palette {
  const isDark = theme.isDark;
  if (known?.isDark !== isDark) known = { isDark, palette: read() };
  return known.palette;
}

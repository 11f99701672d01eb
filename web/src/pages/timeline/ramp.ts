// The colours of the heat map: one hue from nothing to much, and a second one from where it is too much. Each step is lighter or
// darker than the one before, so that the order is seen without seeing hues, and blue and orange stay apart for colour-blind
// people. Pure.

/** Lightness, chroma and hue of OKLCH. */
type Lch = readonly [lightness: number, chroma: number, hue: number];

interface Stops {
  calm: readonly [Lch, Lch];
  alarm: readonly [Lch, Lch];
}

const LIGHT: Stops = {
  calm: [
    [0.958, 0.016, 252],
    [0.6, 0.155, 259],
  ],
  alarm: [
    [0.6, 0.205, 42],
    [0.43, 0.165, 29],
  ],
};

/** On dark ground more is brighter. */
const DARK: Stops = {
  calm: [
    [0.262, 0.028, 262],
    [0.7, 0.14, 256],
  ],
  alarm: [
    [0.755, 0.17, 52],
    [0.93, 0.11, 88],
  ],
};

const STEPS = 192;

export interface Ramp {
  /** From nothing to the top of the scale. */
  colours: readonly string[];
  /** The share of the scale at which the alarm begins; 1 where there is none. */
  alarmAt: number;
}

/** The colours of a scale whose alarm begins at a share of it. */
export function rampOf(isDark: boolean, alarmAt = 1): Ramp {
  const { calm, alarm } = isDark ? DARK : LIGHT;
  const colours = Array.from({ length: STEPS }, (_, step) => {
    const share = step / (STEPS - 1);
    if (share < alarmAt) return cssOf(between(calm, share / alarmAt));
    return alarmAt >= 1 ? cssOf(calm[1]) : cssOf(between(alarm, (share - alarmAt) / (1 - alarmAt)));
  });
  return { colours, alarmAt };
}

/** The colour of a value on a scale from 0 to `top`. */
export function colourOf(ramp: Ramp, value: number, top: number): string {
  const share = top > 0 ? Math.min(1, Math.max(0, value / top)) : 0;
  return ramp.colours[Math.round(share * (STEPS - 1))] ?? '';
}

/** The scale as the background of its legend. */
export function gradientOf({ colours, alarmAt }: Ramp): string {
  const at = (share: number) => colours[Math.round(share * (STEPS - 1))];
  const stops: string[] = [];
  for (let part = 0; part <= 8; part += 1) {
    const share = (part / 8) * Math.max(0, alarmAt - 1 / STEPS);
    stops.push(`${at(share)} ${(share * 100).toFixed(1)}%`);
  }
  if (alarmAt < 1) {
    stops.push(`${at(alarmAt + 1 / STEPS)} ${(alarmAt * 100).toFixed(1)}%`, `${at(1)} 100%`);
  }
  return `linear-gradient(90deg,${stops.join()})`;
}

function between([from, to]: readonly [Lch, Lch], share: number): Lch {
  const mixed = (place: 0 | 1 | 2) => from[place] + (to[place] - from[place]) * share;
  return [mixed(0), mixed(1), mixed(2)];
}

function cssOf(colour: Lch): string {
  return `rgb(${rgbOf(colour).join(' ')})`;
}

/** OKLCH in sRGB, after Björn Ottosson's definition of Oklab. */
export function rgbOf([lightness, chroma, hue]: Lch): [number, number, number] {
  const angle = (hue * Math.PI) / 180;
  const [a, b] = [chroma * Math.cos(angle), chroma * Math.sin(angle)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    byteOf(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    byteOf(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    byteOf(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function byteOf(linear: number): number {
  const light = linear <= 0.0031308 ? linear * 12.92 : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(Math.min(1, Math.max(0, light)) * 255);
}

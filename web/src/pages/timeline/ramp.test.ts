import { expect, test } from 'vitest';
import { colourOf, gradientOf, rampOf, rgbOf } from './ramp';

/** How light a colour is to the eye (WCAG's relative luminance). */
function luminance(css: string): number {
  const [red, green, blue] = (css.match(/\d+/g) ?? []).map((part) => {
    const share = Number(part) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}

test.each([true, false])('more is always brighter on dark ground and darker on light ground (dark: %s)', (isDark) => {
  const lights = rampOf(isDark, 0.9).colours.map(luminance);

  const steps = lights.slice(1).map((light, place) => light - (lights[place] ?? 0));

  expect(steps.filter((step) => (isDark ? step < -0.002 : step > 0.002))).toEqual([]);
});

test.each([true, false])('the alarm is another hue: more red than blue (dark: %s)', (isDark) => {
  const ramp = rampOf(isDark, 0.9);
  const parts = (value: number) => (colourOf(ramp, value, 100).match(/\d+/g) ?? []).map(Number);

  const [calmRed = 0, , calmBlue = 0] = parts(88);
  const [red = 0, , blue = 0] = parts(92);

  expect(calmBlue).toBeGreaterThan(calmRed + 40);
  expect(red).toBeGreaterThan(blue + 60);
});

test('without an alarm the whole scale has one hue', () => {
  const ramp = rampOf(false);

  const parts = ramp.colours.map((colour) => (colour.match(/\d+/g) ?? []).map(Number));
  expect(parts.filter(([red = 0, , blue = 0]) => red > blue)).toEqual([]);
  expect(gradientOf(ramp)).not.toContain('undefined');
});

test('values beyond the scale have the colours of its ends', () => {
  const ramp = rampOf(true, 0.9);

  expect(colourOf(ramp, -5, 100)).toBe(ramp.colours[0]);
  expect(colourOf(ramp, 500, 100)).toBe(ramp.colours.at(-1));
  expect(colourOf(ramp, 5, 0)).toBe(ramp.colours[0]);
});

test('colours are those of the definition', () => {
  expect(rgbOf([1, 0, 0])).toEqual([255, 255, 255]);
  expect(rgbOf([0, 0, 0])).toEqual([0, 0, 0]);
  expect(rgbOf([0.628, 0.2577, 29.23])).toEqual([255, 0, 0]);
});

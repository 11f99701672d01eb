// Times without data are hatched, so that they are not taken for a line at zero or for a chart that has not been loaded.
import uPlot from 'uplot';
import { faded, type Palette } from './colours';
import { fontAt } from './font';
import type { Gap } from './gaps';

/** Narrower ones are the break of the line alone. */
const LEAST_PIXELS = 3;
const APART = 7;

export function drawGaps(plot: uPlot, gaps: readonly Gap[], textOf: (gap: Gap) => string, palette: Palette): void {
  const { ctx, bbox } = plot;
  const scale = uPlot.pxRatio;
  for (const gap of gaps) {
    const left = Math.max(bbox.left, plot.valToPos(gap.from, 'x', true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(gap.to, 'x', true));
    if (right - left < LEAST_PIXELS * scale) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.clip();
    ctx.fillStyle = faded(palette.text, 0.05);
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.beginPath();
    ctx.strokeStyle = faded(palette.text, 0.22);
    ctx.lineWidth = scale;
    // From a multiple of the distance, so that the lines stand still while the chart moves on.
    const apart = APART * scale;
    const first = Math.floor((left - bbox.height) / apart) * apart;
    for (let x = first; x < right; x += apart) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
    write(plot, textOf(gap), (left + right) / 2, right - left, palette);
    ctx.restore();
  }
}

function write({ ctx, bbox }: uPlot, text: string, middle: number, room: number, palette: Palette): void {
  const scale = uPlot.pxRatio;
  ctx.font = fontAt(scale);
  const width = ctx.measureText(text).width;
  if (width + 16 * scale > room) return;
  const y = bbox.top + bbox.height / 2;
  ctx.fillStyle = faded(palette.surface, 0.9);
  ctx.fillRect(middle - width / 2 - 6 * scale, y - 9 * scale, width + 12 * scale, 18 * scale);
  ctx.fillStyle = palette.text;
  ctx.textAlign = 'center';
  ctx.textBaseline = 'middle';
  ctx.fillText(text, middle, y);
}

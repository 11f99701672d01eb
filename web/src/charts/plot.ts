// What is drawn on the canvas, and the options of uPlot. Pure of Svelte: Chart.svelte says what to draw and when.
import uPlot from 'uplot';
import { preferences } from '../text/preferences.svelte';
import { fontAt } from './font';
import { lonely, type Gap } from './gaps';
import { AXIS_HEIGHT, PLOT_LEFT, PLOT_RIGHT, PLOT_TOP } from './geometry';
import { drawGaps } from './hatch';
import type { Drawing, Limit } from './lines';
import { thinned, type Mark } from './marks';
import { faded, type Palette } from './colours';
import type { Span } from './ranges';
import { timeLabels, TIME_STEPS } from './times';
import { axisRange, axisText, steps } from './units';

/** What may change while a chart lives. Each drawing reads it again. */
export interface Scene {
  drawing: Drawing;
  span: Span;
  palette: Palette;
  marks: readonly Mark[];
  /** The mark that is pointed at. */
  marked: string | null;
  pinned: number | null;
  hidden: ReadonlySet<string>;
  /** Times without data. */
  gaps: readonly Gap[];
  gapText: (gap: Gap) => string;
}

export interface Acts {
  moved: (time: number | null) => void;
  selected: (from: number, to: number) => void;
  back: () => void;
  /** It was drawn: the axis may reach elsewhere now. */
  drawn: (axis: Axis) => void;
}

/** The axis of values as it lies on the page, in CSS pixels. */
export interface Axis {
  top: number;
  left: number;
  height: number;
  least: number;
  most: number;
}

/** Marks that are closer are one line. */
const MARKS_APART = 4;
/** How strong the band between the least and the greatest is: weaker where many lie over one another. */
const BAND = 0.3;
const BAND_OF_MANY = 0.14;
const FONT = fontAt(1);

/** The columns as uPlot takes them: the times, then the mean of each line, with the greatest and the least behind it. */
export function dataOf(drawing: Drawing): uPlot.AlignedData {
  const columns = drawing.lines.flatMap(({ column, hasBand }) =>
    hasBand ? [column.avg, column.max, column.min] : [column.avg],
  );
  return [drawing.times, ...columns];
}

export function optionsOf(scene: () => Scene, acts: Acts, size: { width: number; height: number }): uPlot.Options {
  const { drawing } = scene();
  const { series, bands } = seriesOf(scene);
  const text = () => scene().palette.text;
  const grid = { stroke: () => scene().palette.grid, width: 1 };
  return {
    ...size,
    padding: [PLOT_TOP, PLOT_RIGHT, 0, 0],
    legend: { show: false },
    // Days begin where the reader's do.
    ...(preferences.zone === 'utc' ? { tzDate: (at: number) => uPlot.tzDate(new Date(at * 1000), 'Etc/UTC') } : {}),
    series,
    bands,
    scales: {
      x: { time: true, range: () => [scene().span.from, scene().span.to] },
      y: {
        range: (_, __, most) => {
          const { unit, top, limits } = scene().drawing;
          return axisRange(
            unit,
            most,
            top,
            limits.map((limit) => limit.value),
          );
        },
      },
    },
    axes: [
      {
        font: FONT,
        stroke: text,
        grid: { ...grid, show: false },
        ticks: { ...grid, size: 4 },
        border: { ...grid, show: true },
        incrs: TIME_STEPS,
        space: 76,
        size: AXIS_HEIGHT,
        gap: 4,
        values: (_, times, __, ___, step) => timeLabels(times, step),
      },
      {
        font: FONT,
        stroke: text,
        grid,
        ticks: { show: false },
        incrs: steps(drawing.unit),
        space: 32,
        size: PLOT_LEFT,
        gap: 6,
        values: (_, values) => values.map((value) => axisText(value, drawing.unit)),
      },
    ],
    cursor: {
      y: false,
      points: {
        // An edge of a band has none.
        size: (plot, place) => (plot.series[place]?.points?.size === 0 ? 0 : 9),
        width: (plot, place) => (plot.series[place]?.points?.size === 0 ? 0 : 2),
        stroke: () => scene().palette.surface,
        fill: (plot, place) => colourOf(plot, place),
      },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      bind: { dblclick: (_, __) => () => (acts.back(), null) },
    },
    hooks: {
      drawAxes: [
        (plot) => drawGaps(plot, scene().gaps, scene().gapText, scene().palette),
        (plot) => drawMarks(plot, scene()),
      ],
      draw: [(plot) => drawLimits(plot, scene()), (plot) => acts.drawn(axisOf(plot))],
      setCursor: [
        (plot) => {
          const left = plot.cursor.left ?? -1;
          acts.moved(left < 0 ? null : plot.posToVal(left, 'x'));
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          if (width > 0) acts.selected(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
        },
      ],
    },
  };
}

function colourOf(plot: uPlot, place: number): string {
  const stroke = plot.series[place]?.stroke;
  const found = typeof stroke === 'function' ? stroke(plot, place) : stroke;
  return typeof found === 'string' ? found : 'transparent';
}

function axisOf({ bbox, scales }: uPlot): Axis {
  const { min, max } = scales.y ?? {};
  return {
    top: bbox.top / uPlot.pxRatio,
    left: bbox.left / uPlot.pxRatio,
    height: bbox.height / uPlot.pxRatio,
    least: min ?? 0,
    most: max ?? 1,
  };
}

function seriesOf(scene: () => Scene): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const { lines } = scene().drawing;
  const band = lines.filter((line) => line.hasBand).length > 2 ? BAND_OF_MANY : BAND;
  for (const line of lines) {
    const full = () => scene().palette.series.get(line.colour) ?? scene().palette.text;
    const colour = line.isFaint ? () => faded(full(), 0.6) : full;
    const show = !scene().hidden.has(line.name);
    series.push({
      label: line.label,
      show,
      width: line.isFaint ? 1 : 1.5,
      stroke: colour,
      ...(line.isFilled ? { fill: () => faded(colour(), 0.1) } : {}),
      ...(line.isDashed ? { dash: [5, 4] } : line.isFaint ? { dash: [2, 3] } : {}),
      points: {
        show: false,
        size: 5,
        fill: colour,
        // A value between two gaps would not be seen.
        filter: (plot, place) => {
          const [from, to] = plot.series[place]?.idxs ?? [0, -1];
          const alone = lonely(plot.data[place] ?? [], from, to);
          return alone.length > 0 ? alone : null;
        },
      },
    });
    if (!line.hasBand) continue;
    // No width, and no point at the cursor: it is the edge of a band.
    const edge: uPlot.Series = { show, width: 0, points: { show: false, size: 0 } };
    series.push({ ...edge }, { ...edge });
    bands.push({ series: [series.length - 2, series.length - 1], fill: () => faded(full(), band) });
  }
  return { series, bands };
}

function drawMarks(plot: uPlot, { marks, marked, pinned, palette }: Scene): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const line = (at: number, stroke: string, width: number, dash: number[]) => {
    const x = Math.round(plot.valToPos(at, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.beginPath();
    ctx.strokeStyle = stroke;
    ctx.lineWidth = width * uPlot.pxRatio;
    ctx.setLineDash(dash.map((part) => part * uPlot.pxRatio));
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  };
  const perPixel = (plot.posToVal(1, 'x') - plot.posToVal(0, 'x')) * MARKS_APART;
  for (const mark of thinned(marks, perPixel)) line(mark.at, faded(palette.tones[mark.tone], 0.6), 1, [3, 3]);
  const pointed = marks.find((mark) => mark.id === marked);
  if (pointed) line(pointed.at, palette.tones[pointed.tone], 2, []);
  if (pinned !== null) line(pinned, palette.tones.accent, 1.5, []);
  ctx.restore();
}

function drawLimits(plot: uPlot, { drawing, palette }: Scene): void {
  for (const limit of drawing.limits) drawLimit(plot, limit, palette);
}

function drawLimit(plot: uPlot, limit: Limit, palette: Palette): void {
  const { ctx, bbox } = plot;
  const y = Math.round(plot.valToPos(limit.value, 'y', true));
  if (y < bbox.top - 1 || y > bbox.top + bbox.height + 1) return;
  const colour = palette.tones[limit.tone];
  const right = bbox.left + bbox.width;
  ctx.save();
  if (limit.shade) {
    ctx.fillStyle = faded(colour, 0.09);
    if (limit.shade === 'above') ctx.fillRect(bbox.left, bbox.top, bbox.width, y - bbox.top);
    else ctx.fillRect(bbox.left, y, bbox.width, bbox.top + bbox.height - y);
  }
  ctx.beginPath();
  ctx.strokeStyle = colour;
  ctx.lineWidth = uPlot.pxRatio;
  ctx.setLineDash([6 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(right, y);
  ctx.stroke();
  const scale = uPlot.pxRatio;
  ctx.font = fontAt(scale);
  const width = ctx.measureText(limit.label).width;
  // On the other side where there is no room.
  const isHigh = y - bbox.top < 16 * scale;
  const isLow = bbox.top + bbox.height - y < 16 * scale;
  const top = isHigh || (limit.side === 'below' && !isLow) ? y + 2 * scale : y - 16 * scale;
  ctx.fillStyle = faded(palette.surface, 0.85);
  const left = limit.edge === 'left' ? bbox.left + 2 * scale : right - width - 8 * scale;
  ctx.fillRect(left, top, width + 6 * scale, 14 * scale);
  ctx.fillStyle = palette.text;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillText(limit.label, left + 3 * scale, top + 7 * scale);
  ctx.restore();
}

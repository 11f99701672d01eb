// What a pointer does on a chart beside what uPlot sees itself: it drags to choose and moves its cursor.
import type uPlot from 'uplot';
import type { Span } from './ranges';

export interface Pointing {
  entered: () => void;
  left: () => void;
  clicked: (time: number) => void;
  /** A drag begins: the span that it moves. */
  grabbed: () => Span;
  /** So many seconds from that span on. */
  panned: (from: Span, seconds: number) => void;
  zoomed: (factor: number, about: number) => void;
}

/** A press that moved further than this is no click. */
const CLICK_PIXELS = 4;
/** Wheels tell lines or pages on some machines. */
const LINE_PIXELS = 16;

export function follow(plot: uPlot, pointing: Pointing): () => void {
  const { over } = plot;
  const leaving = new AbortController();
  const { signal } = leaving;
  let pressedAt: { x: number; y: number } | null = null;
  let dragged: { from: Span; x: number; perPixel: number } | null = null;
  // A wheel tells parts of a second, spans have whole ones.
  let carried = 0;

  const leftOf = (event: MouseEvent) => event.clientX - over.getBoundingClientRect().left;
  const timeAt = (left: number) => plot.posToVal(left, 'x');
  const perPixel = () => timeAt(1) - timeAt(0);

  over.addEventListener('mouseenter', () => pointing.entered(), { signal });
  over.addEventListener('mouseleave', () => pointing.left(), { signal });

  // With Shift it pans; uPlot must not see the press then, or it would choose.
  over.addEventListener(
    'pointerdown',
    (event) => {
      if (event.button !== 0) return;
      pointing.entered();
      pressedAt = { x: event.clientX, y: event.clientY };
      if (event.shiftKey && event.pointerType === 'mouse') {
        dragged = { from: pointing.grabbed(), x: event.clientX, perPixel: perPixel() };
        over.setPointerCapture(event.pointerId);
      }
    },
    { signal },
  );
  over.parentElement?.addEventListener(
    'mousedown',
    (event) => {
      if (event.shiftKey) event.stopPropagation();
    },
    { signal, capture: true },
  );
  over.addEventListener(
    'pointermove',
    (event) => {
      if (event.pointerType === 'touch' && event.buttons) plot.setCursor({ left: leftOf(event), top: 0 });
      if (dragged) pointing.panned(dragged.from, (dragged.x - event.clientX) * dragged.perPixel);
    },
    { signal },
  );
  const released = () => (dragged = null);
  over.addEventListener('pointerup', released, { signal });
  over.addEventListener('pointercancel', released, { signal });
  over.addEventListener(
    'click',
    (event) => {
      const moved = pressedAt ? Math.hypot(event.clientX - pressedAt.x, event.clientY - pressedAt.y) : 0;
      if (moved <= CLICK_PIXELS && !event.shiftKey && event.detail < 2) pointing.clicked(timeAt(leftOf(event)));
    },
    { signal },
  );

  // The wheel alone scrolls the page. Sideways it pans, with Ctrl, or a pinch, it zooms.
  over.addEventListener(
    'wheel',
    (event) => {
      const pixels = event.deltaMode === 0 ? 1 : LINE_PIXELS;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const by = Math.max(-100, Math.min(100, event.deltaY * pixels));
        pointing.zoomed(Math.exp(by / 150), timeAt(leftOf(event)));
        return;
      }
      const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
      event.preventDefault();
      carried += sideways * pixels * perPixel();
      const whole = Math.trunc(carried);
      if (whole === 0) return;
      carried -= whole;
      pointing.panned(pointing.grabbed(), whole);
    },
    { signal, passive: false },
  );
  return () => leaving.abort();
}

const listeners = new Set<() => void>();
let frame = 0;
let resized: ResizeObserver | undefined;

function moved(): void {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    for (const listener of listeners) listener();
  });
}

/** Calls at most once a frame when what the window shows may be another part of the page. One listener serves all lists. */
export function onScroll(listener: () => void): () => void {
  if (listeners.size === 0) {
    window.addEventListener('scroll', moved, { passive: true });
    window.addEventListener('resize', moved);
    // Something above a list may have come or gone.
    resized = new ResizeObserver(moved);
    resized.observe(document.body);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    window.removeEventListener('scroll', moved);
    window.removeEventListener('resize', moved);
    resized?.disconnect();
  };
}

/** Tells how wide a box is, and whether it is in sight, as that changes. */
export function watchBox(
  box: Element,
  resized: (width: number) => void,
  seen: (isInSight: boolean) => void,
): () => void {
  const size = new ResizeObserver(([entry]) => resized(Math.floor(entry?.contentRect.width ?? 0)));
  // A little before it is scrolled to.
  const sight = new IntersectionObserver(([entry]) => seen(entry?.isIntersecting ?? true), { rootMargin: '160px' });
  size.observe(box);
  sight.observe(box);
  return () => {
    size.disconnect();
    sight.disconnect();
  };
}

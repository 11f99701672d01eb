type Told = (isSeen: boolean) => void;

const told = new WeakMap<Element, Told>();
const observers = new Map<string, IntersectionObserver>();

/**
 * Tells whether an element is in sight, or within `margin` of it: `{@attach whenSeen((isSeen) => ...)}`. One observer for
 * all of the same margin. An element can be watched once.
 */
export function whenSeen(tell: Told, margin = '0px'): (element: Element) => () => void {
  return (element) => {
    const observer = observerOf(margin);
    told.set(element, tell);
    observer.observe(element);
    return () => {
      observer.unobserve(element);
      told.delete(element);
    };
  };
}

function observerOf(margin: string): IntersectionObserver {
  let observer = observers.get(margin);
  if (!observer) {
    observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) told.get(entry.target)?.(entry.isIntersecting);
      },
      { rootMargin: margin },
    );
    observers.set(margin, observer);
  }
  return observer;
}

// Lists whose rows can be deleted. What leaves the document loses the focus to <body>, and a keyboard starts from the top of
// the page again. Here the row that takes the place of a deleted one gets the focus.

/** `data-row` marks a row that is neither of the others. */
const ROW = 'li,tr,[data-row]';
const FOCUSABLE = ':is(button,input,select,textarea):not(:disabled),a[href],summary';
const HEADING = 'h1,h2,h3';

/** A row around the focus, and what was beside it while it was there. Rows may stand in rows. */
interface Level {
  row: Element;
  rows: Element[];
  /** From the row to what has the focus: which child of which. */
  path: number[];
  heading: HTMLElement | null;
}

/**
 * Moves the focus on when its row is deleted, or a button that stands in no row. Use it as an attachment, on an element that
 * stays when the last row is deleted.
 */
export function keepRowFocus(root: HTMLElement): () => void {
  let focused: Element | null = null;
  let levels: Level[] = [];
  const note = (element: Element | null) => {
    focused = element;
    levels = element ? levelsOf(element, root) : [];
  };
  const entered = (event: Event) => note(event.target as Element);
  // Some browsers say so of what is being deleted, too. That is over a moment later.
  const left = () =>
    setTimeout(() => {
      if (focused?.isConnected && focused !== document.activeElement) note(null);
    });
  // A key that is held down must not delete one row after the other.
  const pressed = (event: KeyboardEvent) => {
    if (event.repeat && event.key === 'Enter' && event.target instanceof HTMLButtonElement) event.preventDefault();
  };
  const observer = new MutationObserver(() => {
    if (!focused || focused.isConnected) return note(focused);
    const next = document.activeElement === document.body ? successor(levels) : null;
    note(null);
    // Live data may delete a row that was scrolled away.
    next?.focus({ preventScroll: true });
  });
  root.addEventListener('focusin', entered);
  root.addEventListener('keydown', pressed);
  root.addEventListener('focusout', left);
  observer.observe(root, { childList: true, subtree: true });
  return () => {
    observer.disconnect();
    root.removeEventListener('focusin', entered);
    root.removeEventListener('keydown', pressed);
    root.removeEventListener('focusout', left);
  };
}

/** The innermost row first. */
function levelsOf(focused: Element, root: Element): Level[] {
  const levels: Level[] = [];
  for (let row = focused.closest(ROW); row && root.contains(row); row = row.parentElement?.closest(ROW) ?? null) {
    const path: number[] = [];
    for (let at: Element = focused; at !== row && at.parentElement; at = at.parentElement)
      path.unshift([...at.parentElement.children].indexOf(at));
    levels.push({ row, rows: [...(row.parentElement?.children ?? [])], path, heading: headingOf(row) });
  }
  // What takes the place of a button that stands in no row may be anything: only the heading is known.
  return levels.length > 0 ? levels : [{ row: focused, rows: [], path: [], heading: headingOf(focused) }];
}

function headingOf(element: Element): HTMLElement | null {
  return element.parentElement?.closest('section,dialog,main')?.querySelector<HTMLElement>(HEADING) ?? null;
}

/** The same button of the next row that is there, or of the one before; the heading of the list where there is none. */
function successor(levels: readonly Level[]): HTMLElement | null {
  for (const { row, rows, path, heading } of levels) {
    const place = rows.indexOf(row);
    for (const other of [...rows.slice(place), ...rows.slice(0, place).reverse()]) {
      if (!other.isConnected) continue;
      // A row that has only lost the button may have another one in its place.
      const found = other === row ? row.querySelector<HTMLElement>(FOCUSABLE) : counterpart(other, path);
      if (found) return found;
    }
    if (!heading?.isConnected) continue;
    heading.tabIndex = -1;
    return heading;
  }
  return null;
}

function counterpart(row: Element, path: readonly number[]): HTMLElement | null {
  const same = path.reduce<Element | undefined>((at, place) => at?.children[place], row);
  if (same?.matches(FOCUSABLE)) return same as HTMLElement;
  return [...row.querySelectorAll<HTMLElement>(FOCUSABLE)].at(-1) ?? null;
}

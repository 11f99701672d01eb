import type { View } from './choice';

const KEY = 'fleet-view';

/** How the fleet was shown last in this browser. */
export function recall(): View {
  try {
    return localStorage.getItem(KEY) === 'table' ? 'table' : 'cards';
  } catch {
    return 'cards';
  }
}

export function remember(view: View): void {
  try {
    localStorage.setItem(KEY, view);
  } catch {
    // Storage may be switched off: the address still says it.
  }
}

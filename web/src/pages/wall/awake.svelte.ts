/** After so long without a movement the pointer is only in the way. */
const IDLE_MS = 3_000;

/** Keeps the display on while the page is seen, where the browser can. Call what it gives to let it sleep. */
export function keepAwake(): () => void {
  let lock: WakeLockSentinel | null = null;
  let isOver = false;

  // The browser releases it whenever the page is hidden.
  async function take() {
    if (document.hidden || !('wakeLock' in navigator)) return;
    try {
      const taken = await navigator.wakeLock.request('screen');
      if (isOver) void taken.release();
      else lock = taken;
    } catch {
      // Not allowed, or the battery is low: the display does what it does.
    }
  }

  const shown = () => void take();
  document.addEventListener('visibilitychange', shown);
  void take();
  return () => {
    isOver = true;
    document.removeEventListener('visibilitychange', shown);
    void lock?.release();
  };
}

/** Whether the pointer rests. */
export class Pointer {
  isIdle = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  watch(): () => void {
    const moved = () => {
      this.isIdle = false;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => (this.isIdle = true), IDLE_MS);
    };
    moved();
    window.addEventListener('pointermove', moved, { passive: true });
    return () => {
      clearTimeout(this.#timer);
      window.removeEventListener('pointermove', moved);
    };
  }
}

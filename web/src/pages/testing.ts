// What tests of components have in common.
import { flushSync } from 'svelte';
import { expect, vi } from 'vitest';

/** What jsdom lacks of dialogs. */
export function withDialogs(): void {
  vi.stubGlobal('matchMedia', () => ({ matches: false }));
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) {
    this.open = false;
  };
}

/** What jsdom lacks to watch elements: these never say anything. */
export function withObservers(): void {
  const Observer = class {
    observe = () => undefined;
    unobserve = () => undefined;
    disconnect = () => undefined;
  };
  vi.stubGlobal('ResizeObserver', Observer);
  vi.stubGlobal('IntersectionObserver', Observer);
}

/** An answer of the service. */
export const answered = (data: unknown) => ({ data, response: new Response() }) as never;

/** An answer that waits until `end` is called with what it says, or with an error. */
export function waiting() {
  let end: (data: unknown) => void = () => undefined;
  const answer = new Promise((resolve, reject) => {
    end = (data) => (data instanceof Error ? reject(data) : resolve(answered(data)));
  });
  return { answer: answer as never, end: (data: unknown) => end(data) };
}

/** Presses a button as a key does: it has the focus. */
export function press(button: HTMLElement | null | undefined): void {
  button?.focus();
  button?.click();
  flushSync();
}

/** How buttons are. Browsers take the focus from one that is disabled, unlike jsdom: one that is busy must not be disabled. */
export function statesOf(buttons: readonly (HTMLButtonElement | null | undefined)[]): string[] {
  const isBusy = (button: HTMLElement | null | undefined) => button?.getAttribute('aria-busy') === 'true';
  return buttons.map((button) => (button?.disabled ? 'disabled' : isBusy(button) ? 'busy' : 'ready'));
}

/**
 * Presses the first of the two buttons of a list. It is busy and the other one disabled until `end` answers, and a second press does
 * not call `asked`. It keeps the focus.
 */
export async function expectOneBusy(
  buttons: () => HTMLButtonElement[],
  asked: { mock: { calls: unknown[] } },
  end: () => void,
): Promise<void> {
  await vi.waitFor(() => expect(statesOf(buttons())).toEqual(['ready', 'ready']));
  const [first] = buttons();

  press(first);
  await vi.waitFor(() => expect(statesOf(buttons())).toEqual(['busy', 'disabled']));
  press(first);
  expect(asked.mock.calls).toHaveLength(1);
  end();

  await vi.waitFor(() => expect(statesOf(buttons())).toEqual(['ready', 'ready']));
  expect(document.activeElement).toBe(first);
}

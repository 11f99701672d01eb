// What tests of components have in common.
import { vi } from 'vitest';

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

export interface Toast {
  id: number;
  kind: 'done' | 'failed';
  text: string;
}

/** How long a note stays. What failed stays until it is put away. */
const SHOWN_MS = 4_000;
const MOST = 4;

/** Short notes about what was done, where the page itself does not show it. Failures of a form belong beside the form. */
class Toasts {
  shown = $state<Toast[]>([]);
  #next = 0;

  done(text: string): void {
    const toast = this.#add('done', text);
    setTimeout(() => this.close(toast.id), SHOWN_MS);
  }

  failed(text: string): void {
    this.#add('failed', text);
  }

  close(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }

  #add(kind: Toast['kind'], text: string): Toast {
    const toast = { id: this.#next++, kind, text };
    this.shown = [...this.shown.slice(1 - MOST), toast];
    return toast;
  }
}

export const toasts = new Toasts();

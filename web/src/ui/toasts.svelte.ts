import * as m from '#messages/app';
import type { IconName } from './icons';

export type ToastKind = 'done' | 'failed' | 'critical' | 'warning' | 'info';

export interface ToastWay {
  text: string;
  /** Where it leads; or what it does. */
  href?: string;
  act?: () => void;
}

export interface Toast {
  id: number;
  kind: ToastKind;
  icon: IconName;
  text: string;
  way: ToastWay | null;
  /** How long it is shown while nobody points at it; null until somebody puts it away. */
  shownMs: number | null;
}

/** How long a note stays, and how long when it offers something. What failed stays until it is put away. */
const SHOWN_MS = 4_000;
const OFFERED_MS = 10_000;
const MOST = 4;

/** Short notes about what was done, where the page itself does not show it. Failures of a form belong beside the form. */
class Toasts {
  shown = $state<Toast[]>([]);
  /** The ones with the focus and under the pointer. */
  focused: number | null = null;
  pointedAt: number | null = null;
  #next = 0;

  done(text: string, way: ToastWay | null = null): void {
    this.add({ kind: 'done', icon: 'check', text, way, shownMs: way ? OFFERED_MS : SHOWN_MS });
  }

  failed(text: string): void {
    this.add({ kind: 'failed', icon: 'alert', text, way: null, shownMs: null });
  }

  /** This page lacks a file, and has to be loaded again. */
  reload(text: string): void {
    const way = { text: m.reload(), act: () => location.reload() };
    this.add({ kind: 'failed', icon: 'refresh', text, way, shownMs: null });
  }

  /** Returns its id, by which it can be closed. */
  add(toast: Omit<Toast, 'id'>): number {
    const id = this.#next++;
    // The oldest that nobody is at makes room.
    const free = this.shown.find((each) => each.id !== this.focused && each.id !== this.pointedAt);
    const left = this.shown.length < MOST ? this.shown : this.shown.filter((each) => each.id !== free?.id);
    this.shown = [...left, { ...toast, id }];
    return id;
  }

  close(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();

import { mount, unmount } from 'svelte';
import type { Order } from './ask';
import type { Signed } from './payload';
import SignDialog from './SignDialog.svelte';

/** Shows the dialog until the order was sent or left. */
export function openDialog(order: Order, send: (signed: Signed | null) => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      void unmount(dialog);
      resolve();
    };
    const dialog = mount(SignDialog, { target: document.body, props: { order, send, done } });
  });
}

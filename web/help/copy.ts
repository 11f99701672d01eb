// Uses nothing of the interface: see build/chunks.ts.

const SHOWN_MS = 2_000;

/** Each block of code can be copied. */
export function copyButtons(): void {
  for (const block of document.querySelectorAll<HTMLElement>('.code')) {
    const code = block.querySelector<HTMLElement>('code');
    if (!code) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', () => void press(button, code));
    block.append(button);
  }
}

/** Copies a text that `element` shows; returns whether that worked. Without HTTPS a page has no clipboard: the text is selected. */
async function copy(text: string, element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return document.execCommand('copy');
  }
}

async function press(button: HTMLButtonElement, code: HTMLElement): Promise<void> {
  if (!(await copy((code.textContent ?? '').trimEnd(), code))) return;
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy'), SHOWN_MS);
}

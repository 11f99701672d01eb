/** Copies a text; gives whether that was possible. Without HTTPS there is no clipboard, but the old way. */
export async function copy(text: string, shownIn?: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return shownIn ? copyShown(shownIn) : copyHidden(text);
  }
}

/** What is shown stays selected, so that a key copies it. */
function copyShown(element: HTMLElement): boolean {
  getSelection()?.selectAllChildren(element);
  return document.execCommand('copy');
}

/** A field that nobody sees helps. */
function copyHidden(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'sr-only';
  // Beside what has the focus: in a dialog the rest of the page cannot be selected.
  (before?.closest('dialog') ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}

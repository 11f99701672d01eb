/** Saves a file on the reader's machine, as the browser does. */
export function saveFile(name: string, type: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // Some browsers read it only after the click has ended.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A name as that of a file: `web servers (EU)` → `web-servers-eu`. */
export function fileName(name: string, ending: string): string {
  const kept = name
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 80);
  return `${kept || 'signalbox'}.${ending}`;
}

/** What a custom property of tokens.css is now, for a canvas, which knows no variables: `colour('--series-1')`. */
export function colour(name: string, within: Element = document.documentElement): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  probe.style.display = 'none';
  within.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

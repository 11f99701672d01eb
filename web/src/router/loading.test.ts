import { expect, it } from 'vitest';
import { compared } from './loading';

const page = (program: string) => `<div id="app"></div><script type="module" crossorigin src="${program}"></script>`;

it('a page with another program is of a newer version', () => {
  expect(compared(page('/assets/index-b.js'), '/assets/index-a.js')).toBe('newer');
  expect(compared(page('/assets/index-a.js'), '/assets/index-a.js')).toBe('same');
});

it('what a proxy says while the service is away is no newer version', () => {
  expect(compared('<html><body><h1>502 Bad Gateway</h1></body></html>', '/assets/index-a.js')).toBe('away');
});

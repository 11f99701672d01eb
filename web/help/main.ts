// What a page of the help can do besides being read. All of it is there without scripts but the search, the copying and the
// choice of colours.
import { copyButtons } from './copy.ts';
import { search } from './search.ts';
import { themeSwitch } from './theme.ts';

search();
copyButtons();
themeSwitch();
closeLists();
markWhereItIs();
focusable();

/** A list that was opened over the page closes when somebody has chosen. */
function closeLists(): void {
  for (const list of document.querySelectorAll<HTMLElement>('[popover]'))
    list.addEventListener('click', ({ target }) => {
      if (target instanceof Element && target.closest('a') && list.matches(':popover-open')) list.hidePopover();
    });
}

/** The list of the page's parts shows the one that is being read. */
function markWhereItIs(): void {
  const links = new Map<string, Element>();
  for (const link of document.querySelectorAll<HTMLAnchorElement>('.contents a'))
    links.set(decodeURIComponent(link.hash.slice(1)), link);
  const headings = [...links.keys()].flatMap((id) => document.getElementById(id) ?? []);
  const mark = () => {
    const current = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 4).at(-1);
    for (const [id, link] of links)
      if (id === current?.id) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
  };
  let isDue = false;
  const soon = () => {
    if (!isDue) requestAnimationFrame(() => ((isDue = false), mark()));
    isDue = true;
  };
  addEventListener('scroll', soon, { passive: true });
  mark();
}

/** What scrolls sideways is scrolled by keys, too; what does not is no stop on the way. */
function focusable(): void {
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (!(target instanceof HTMLElement)) continue;
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute('tabindex');
    }
  });
  for (const box of document.querySelectorAll('article pre, .table-box')) sized.observe(box);
}

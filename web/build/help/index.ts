import type { HelpIndex } from '../../help/find.ts';
import type { Site } from './site.ts';

/** All text of the help, by pages and sections: what the search looks through. */
export function indexOf(site: Site): HelpIndex {
  return site.pages.map(({ address, title, sections }) => ({
    address,
    title,
    sections: sections.map(({ id, heading, text }) => [id, heading, text]),
  }));
}

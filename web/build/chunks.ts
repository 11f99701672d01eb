// Which modules share a file. A browser that speaks HTTP/1.1 asks for six files at a time, and each costs a slow line a round
// trip, so a page is a few files, not one for each module that it shares with another page.

/** Smaller than this, in bytes of source, no shared file is worth its request. */
const WORTHWHILE = 8_000;
/** What so many parts of the interface use is in one file, too. */
const MOST_PAGES = 9;

/** Areas of texts that the first pages show: `messages/LANGUAGE/AREA.json`. */
const FIRST_TEXTS = /^(app|ui|fleet|status|severity|units|alertWords|server|overview|charts|metrics)$/;

const STYLE = /[?&]type=style|\.css$/;

/** The language and the area of a text that is not English. */
const textOf = (id: string) => /\/generated\/messages\/([a-z-]+)\/(\w+)\.ts$/.exec(id);

/**
 * Modules of the interface; the help is a program of its own, and the boot script one file. The help uses none of them: a page
 * of it that found a function in the file of the interface would start the interface.
 */
const isOwn = (id: string) => !textOf(id) && !/\/web\/(help|src\/boot\/(boot|requests))/.test(id);

export const codeSplitting = {
  groups: [
    {
      debugName: 'texts',
      name: (id: string) => {
        const [, language, area = ''] = textOf(id) ?? [];
        return language ? (FIRST_TEXTS.test(area) ? language : `${language}-more`) : null;
      },
      priority: 4,
      includeDependenciesRecursively: false,
    },
    // Styles that several pages have are one file, which is small.
    { name: 'styles', test: (id: string) => isOwn(id) && STYLE.test(id), minShareCount: 4, priority: 4 },
    // What few pages share is another one, so that a page of charts does not ask for a file for each part of it.
    { name: 'more-styles', test: (id: string) => isOwn(id) && STYLE.test(id), minShareCount: 2, priority: 3.5 },
    // What every page has is one file.
    { name: 'base', test: isOwn, tags: ['$initial' as const], priority: 3 },
    { name: 'common', test: isOwn, minShareCount: MOST_PAGES, priority: 2 },
    {
      name: 'parts',
      test: isOwn,
      minShareCount: 2,
      entriesAware: true,
      entriesAwareMergeThreshold: WORTHWHILE,
      priority: 1,
    },
  ],
};

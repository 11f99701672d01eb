// Which modules share a file. A browser that speaks HTTP/1.1 asks for six files at a time, and each costs a slow line a round
// trip, so a page is a few files, not one for each module that it shares with another page.

/** Smaller than this, in bytes of source, no shared file is worth its request. */
const WORTHWHILE = 8_000;
/** What so many parts of the interface use is in one file, too. */
const MOST_PAGES = 5;

/** The pages that people see first, with the parts that come at once. */
const FLEET = /\/src\/pages\/fleet\/(Fleet|Table|ColumnChooser|Pulse)\.svelte$/;
const DOOR = /\/src\/pages\/sign-in\/(SignIn|Register)\.svelte$/;

/** Areas of texts that the first pages show: `messages/LANGUAGE/AREA.json`. */
const FIRST_TEXTS = /^(app|ui|fleet|status|severity|units|alertWords|server|overview|charts|metrics)$/;

/** What draws charts is much, and stays with the pages that have some. */
const CHARTS = /\/node_modules\/uplot\/|\/web\/src\/charts\//;

const STYLE = /[?&]type=style|\.css$/;

/** The language and the area of a text that is not English. */
const textOf = (id: string) => /\/generated\/messages\/([a-z-]+)\/(\w+)\.ts$/.exec(id);

/**
 * Modules of the interface; the help is a program of its own, and the boot script one file. The help uses none of them: a page
 * of it that found a function in the file of the interface would start the interface.
 */
const isOwn = (id: string) => !textOf(id) && !/\/web\/(help|src\/boot\/(boot|requests))/.test(id);

/** What the build knows of a module. */
interface Known {
  getModuleInfo: (id: string) => { importers: readonly string[] } | null;
}

/** Whether a page cannot be shown without a module: it, or a part of it, imports the module. */
function isOf(pages: RegExp, id: string, build: Known): boolean {
  // Grows while it is walked.
  const above = new Set([id]);
  for (const each of above) {
    if (pages.test(each)) return true;
    for (const importer of build.getModuleInfo(each)?.importers ?? []) above.add(importer);
  }
  return false;
}

/** What many pages have, in three files, so that a first page waits for nothing that it does not show. */
const shared = (name: string, isIn: (id: string) => boolean) => (id: string, build: Known) => {
  if (!isIn(id)) return null;
  if (isOf(FLEET, id, build)) return name;
  return isOf(DOOR, id, build) ? `${name}-door` : `${name}-later`;
};

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
    { name: shared('styles', (id) => isOwn(id) && STYLE.test(id)), minShareCount: 4, priority: 4 },
    // What few pages share is another one, so that a page of charts does not ask for a file for each part of it.
    { name: 'more-styles', test: (id: string) => isOwn(id) && STYLE.test(id), minShareCount: 2, priority: 3.5 },
    // What every page has is one file.
    { name: 'base', test: isOwn, tags: ['$initial' as const], priority: 3 },
    { name: shared('common', (id) => isOwn(id) && !CHARTS.test(id)), minShareCount: MOST_PAGES, priority: 2 },
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

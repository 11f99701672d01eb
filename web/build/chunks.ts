// Which modules share a file. A browser that speaks HTTP/1.1 asks for six files at a time, and each costs a slow line a round
// trip, so a page is a few files, not one for each module that it shares with another page.

/** Smaller than this, in bytes of source, no shared file is worth its request. */
const WORTHWHILE = 8_000;
/** What so many parts of the interface use is in one file, too. */
const MOST_PAGES = 5;

/** The page that people see first, with its table: one file. */
const FLEET = /\/src\/pages\/fleet\/(Fleet|Table)\.svelte$/;
const SERVER = /\/src\/pages\/server\/(Server|overview\/Overview)\.svelte$/;
const DOOR = /\/src\/pages\/sign-in\/(SignIn|Register)\.svelte$/;
const MAIN = /\/web\/index\.html$/;

/** Areas of texts that the first pages show: `messages/LANGUAGE/AREA.json`. */
const FIRST_TEXTS = /^(app|ui|fleet|status|severity|units|alertWords|alertSentence|server|overview|charts|metrics)$/;

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
export interface Known {
  getModuleInfo: (id: string) => {
    importers: readonly string[];
    dynamicImporters: readonly string[];
    importedIds: readonly string[];
  } | null;
}

/** The parts of the interface that cannot be shown without a module: what is loaded by itself and imports it, however deep. */
export function partsWith(id: string, build: Known): string[] {
  // Grows while it is walked.
  const above = new Set([id]);
  const found: string[] = [];
  for (const each of above) {
    const { importers = [], dynamicImporters = [] } = build.getModuleInfo(each) ?? {};
    if (importers.length === 0 || dynamicImporters.length > 0) found.push(each);
    for (const importer of importers) above.add(importer);
  }
  return found;
}

/** Whether a module draws charts, or imports one that does. */
function needsCharts(id: string, build: Known): boolean {
  const below = new Set([id]);
  for (const each of below) {
    if (CHARTS.test(each)) return true;
    for (const imported of build.getModuleInfo(each)?.importedIds ?? []) below.add(imported);
  }
  return false;
}

/**
 * The file of what the first pages need. A slow line has six requests at a time, each of which takes a round trip, so that what
 * the fleet or a server shares with other pages is one file for all of it.
 */
export function firstFile(id: string, build: Known): string | null {
  if (!isOwn(id)) return null;
  const parts = partsWith(id, build);
  const isNeeded = (pages: RegExp) => parts.some((part) => pages.test(part));
  const isElsewhere = (pages: RegExp) => parts.some((part) => !pages.test(part));
  if (isNeeded(MAIN)) return 'base';
  if (isNeeded(FLEET)) return isElsewhere(/\/src\/pages\/fleet\//) ? 'base' : 'fleet';
  if (isNeeded(DOOR)) return isElsewhere(DOOR) ? 'door' : null;
  if (!isNeeded(SERVER) || !isElsewhere(SERVER)) return null;
  return needsCharts(id, build) ? 'charts' : 'servers';
}

/** What many pages have, in two files, so that nobody who signs in waits for what is behind the door. */
const shared = (name: string, isIn: (id: string) => boolean) => (id: string, build: Known) => {
  if (!isIn(id)) return null;
  return partsWith(id, build).some((part) => DOOR.test(part)) ? `${name}-door` : `${name}-later`;
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
    { name: firstFile, priority: 5, includeDependenciesRecursively: false },
    // Styles that several pages have are one file, which is small.
    { name: shared('styles', (id) => isOwn(id) && STYLE.test(id)), minShareCount: 4, priority: 4 },
    // What few pages share is another one, so that a page of charts does not ask for a file for each part of it.
    { name: 'more-styles', test: (id: string) => isOwn(id) && STYLE.test(id), minShareCount: 2, priority: 3.5 },
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

// @vitest-environment node
import { expect, test } from 'vitest';
import { firstFile, partsWith, type Known } from './chunks.ts';

/** A build of modules that import others, at once or later, by the end of their path below `web/`. */
function built(imports: Record<string, string[]>, later: Record<string, string[]> = {}): Known {
  const path = (name: string) => `/web/${name}`;
  const importers = (list: Record<string, string[]>, id: string) =>
    Object.keys(list)
      .filter((name) => list[name]?.some((imported) => path(imported) === id))
      .map(path);
  return {
    getModuleInfo: (id) => ({
      importers: importers(imports, id),
      dynamicImporters: importers(later, id),
      importedIds: (imports[id.slice('/web/'.length)] ?? []).map(path),
    }),
  };
}

const [fleet, table, pulse] = ['Fleet', 'Table', 'Pulse'].map((name) => `src/pages/fleet/${name}.svelte`) as [
  string,
  string,
  string,
];
const overview = 'src/pages/server/overview/Overview.svelte';
const [wall, door] = ['src/pages/wall/Wall.svelte', 'src/pages/sign-in/SignIn.svelte'];
const build = built(
  {
    'index.html': ['src/main.ts'],
    'src/main.ts': ['src/App.svelte'],
    'src/App.svelte': ['src/ui/Icon.svelte', 'node_modules/svelte/index.js'],
    [fleet]: ['src/lib/order.ts', 'src/pages/fleet/Lines.svelte', 'src/ui/Icon.svelte'],
    [table]: ['src/pages/fleet/Lines.svelte', 'src/pages/fleet/labels.ts'],
    [pulse]: ['src/pages/fleet/stack.ts', 'src/pages/fleet/labels.ts'],
    [wall]: ['src/lib/order.ts', 'src/ui/Dialog.svelte', 'src/lib/happenings.ts', 'src/lib/awake.ts'],
    [overview]: ['src/ui/Dialog.svelte', 'src/lib/happenings.ts', 'src/ui/Field.svelte', 'src/lib/tiles.ts'],
    'src/lib/happenings.ts': ['src/charts/ranges.ts'],
    [door]: ['src/ui/Field.svelte'],
  },
  { 'src/App.svelte': [fleet, wall, overview, door], [fleet]: [table, pulse] },
);
const fileOf = (name: string) => firstFile(`/web/${name}`, build);

test('a module belongs to what is loaded by itself and cannot do without it', () => {
  expect(partsWith('/web/src/pages/fleet/labels.ts', build)).toEqual([`/web/${table}`, `/web/${pulse}`]);
  expect(partsWith('/web/src/ui/Icon.svelte', build).sort()).toEqual(['/web/index.html', `/web/${fleet}`]);
});

test('what the fleet and its table need is one file, and what other pages need of it comes with the program', () => {
  expect([fleet, table, 'src/pages/fleet/Lines.svelte', 'src/pages/fleet/labels.ts'].map(fileOf)).toEqual(
    Array(4).fill('fleet'),
  );
  expect(['src/App.svelte', 'src/ui/Icon.svelte', 'src/lib/order.ts'].map(fileOf)).toEqual(Array(3).fill('base'));
  // What is shown a moment later.
  expect(fileOf('src/pages/fleet/stack.ts')).toBeNull();
});

test('what a server shares with other pages is one file, but for what draws charts and what the door needs', () => {
  expect(fileOf('src/ui/Dialog.svelte')).toBe('servers');
  expect(['src/lib/happenings.ts', 'src/charts/ranges.ts'].map(fileOf)).toEqual(['charts', 'charts']);
  expect(fileOf('src/ui/Field.svelte')).toBe('door');
  expect(['src/lib/tiles.ts', 'src/lib/awake.ts'].map(fileOf)).toEqual([null, null]);
});

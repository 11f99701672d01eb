// What the palette offers: what it is called, what finds it, and what it does.
import * as app from '#messages/app';
import { LANGUAGES } from '#messages/languages';
import * as m from '#messages/palette';
import type { Server } from '../api/types';
import { places } from '../frame/keys';
import { refusal } from '../lib/access';
import { waiting } from '../live/waiting.svelte';
import { theme } from '../lib/theme.svelte';
import { written } from '../pages/fleet/choice';
import { lengthWords } from '../pages/alerts/silence';
import { pages } from '../pages/pages';
import { addressOf, tabs } from '../pages/server/tabs';
import { session } from '../session/session.svelte';
import { chooseLanguage, nameOf } from '../text/language';
import type { IconName } from '../ui/icons';
import { askedFor, type Asked, type Verbs } from './asked';
import { fit } from './fuzzy';
import { silence } from './silencing';

export type Group = 'here' | 'servers' | 'tags' | 'pages' | 'actions';

export interface Entry {
  group: Group;
  icon: IconName;
  text: string;
  /** What tells it apart from others with its text, where it has no address. */
  id?: string;
  /** The part of the text that somebody looks for, where the rest stands in each of its kind. */
  name?: string;
  /** Said beside the text. */
  note?: string;
  /** What finds it besides its text. */
  beside?: readonly string[];
  /** Keys that do the same. */
  keys?: string[];
  /** An address of the interface; otherwise `act` says what happens. */
  href?: string;
  /** The address is opened by the browser: it is none of the interface's pages. */
  isExternal?: boolean;
  act?: () => void;
  /** Why the caller may not; choosing it says so. */
  refused?: string;
}

export interface Found extends Entry {
  score: number;
  at: number[];
}

/** What only the page itself can do. */
export interface Means {
  signOut: () => void;
  showKeys: () => void;
}

/** As many servers and tags as are read at a glance. */
const MOST_SERVERS = 8;
const MOST_TAGS = 4;
/** Of what is done to servers. */
const MOST_DONE = 5;
/** How long a silence lasts when nobody says. */
const SILENCE_MINUTES = 60;

const words = (list: string) => list.split(',');

const verbs = (): Verbs => ({
  silence: words(m.silenceVerbs()),
  run: words(m.runVerbs()),
  fillers: words(m.fillers()),
  tag: words(m.tagWords()),
});

/** The keys that go to an address: `g`, `a`. */
function keysOf(href: string): Pick<Entry, 'keys'> {
  const key = Object.keys(places).find((candidate) => places[candidate]?.href === href);
  return key ? { keys: [app.keyGo(), key] } : {};
}

/** How many wait for the reader. */
const noteOf = (count: number) => (count > 0 ? { note: m.forYou({ count }) } : {});

function pageEntries(): Entry[] {
  const page = (href: string, text: string, icon: IconName): Entry => ({
    group: 'pages',
    href,
    text,
    icon,
    ...keysOf(href),
  });
  return [
    page('/', app.fleet(), 'grid'),
    page('/alerts', app.alerts(), 'bell'),
    page('/alerts?view=thresholds', m.rules(), 'bell'),
    page('/alerts?view=history', m.alertHistory(), 'history'),
    page('/run', app.bulkRun(), 'terminal'),
    { ...page('/run?view=waiting', m.waiting(), 'key'), ...noteOf(waiting.forMe) },
    page('/run?view=schedules', m.schedules(), 'clock'),
    page('/wall', app.wall(), 'monitor'),
    page('/account', m.profile(), 'user'),
    page('/account/security', m.security(), 'lock'),
    page('/account/notifications', m.notifications(), 'send'),
    page('/account/silences', m.silences(), 'moon'),
    page('/account/teams', m.teams(), 'user'),
    page('/account/tokens', m.tokens(), 'key'),
    page('/account/updates', m.updates(), 'refresh'),
    page('/account/audit', m.audit(), 'history'),
    ...(session.user?.is_admin ? [page('/account/users', m.users(), 'user')] : []),
    page('/account/about', m.about(), 'info'),
    { ...page('/help', m.documents(), 'help'), isExternal: true },
    { ...page('/docs', m.apiDocuments(), 'external'), isExternal: true },
  ];
}

/** Pages that are reached without knowing an id, and that are not listed above. */
function otherPages(listed: readonly Entry[]): Entry[] {
  const known = new Set([...listed.map(({ href }) => href), '/servers', '/servers/new']);
  return pages
    .filter(({ pattern, open }) => !open && pattern.split('/').every((part) => !/^:\w+$/.test(part)))
    .map(({ pattern, title }) => ({ href: pattern.replace(/\/:\w+\?$/, ''), text: title() }))
    .filter(({ href }) => !known.has(href))
    .map(({ href, text }) => ({ group: 'pages' as const, icon: 'chevron' as const, href, text, ...keysOf(href) }));
}

function actionEntries(means: Means): Entry[] {
  const action = (text: string, icon: IconName, act: () => void): Entry => ({ group: 'actions', text, icon, act });
  return [
    { group: 'actions', text: m.addServer(), icon: 'plus', href: '/servers/new', ...keysOf('/servers/new') },
    { group: 'actions', text: m.addSchedule(), icon: 'clock', href: '/run?view=schedules&new=1' },
    action(m.themeSystem(), 'monitor', () => theme.choose('system')),
    action(m.themeLight(), 'sun', () => theme.choose('light')),
    action(m.themeDark(), 'moon', () => theme.choose('dark')),
    ...LANGUAGES.map((language) =>
      action(m.language({ language: nameOf(language) }), 'settings', () => chooseLanguage(language)),
    ),
    action(m.languageAuto(), 'settings', () => chooseLanguage(null)),
    { ...action(m.showKeys(), 'list', means.showKeys), keys: ['?'] },
    action(m.signOut(), 'signout', means.signOut),
  ];
}

function serverEntry(server: Server): Entry {
  return {
    group: 'servers',
    icon: 'server',
    text: server.name,
    note: [server.host, ...server.tags].filter(Boolean).join(' · '),
    beside: [server.host, ...server.tags],
    href: addressOf(server.id, ''),
  };
}

/** Who can do what on a server: a dialog of its page. */
function shareEntry(server: Server): Entry {
  return {
    group: 'here',
    icon: 'user',
    text: m.share({ server: server.name }),
    href: `${addressOf(server.id, '')}?share=1`,
  };
}

/** The parts of a server's page. */
function tabEntries(server: Server, isHere: boolean): Entry[] {
  return tabs.map((tab) => ({
    group: isHere ? 'here' : 'servers',
    icon: tab.icon,
    text: isHere ? tab.label() : m.part({ server: server.name, part: tab.label() }),
    beside: isHere ? [server.name] : server.tags,
    href: addressOf(server.id, tab.name),
  }));
}

function tagEntries(servers: readonly Server[]): Entry[] {
  const counts = new Map<string, number>();
  for (const server of servers) for (const tag of server.tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].map(([tag, count]) => ({
    group: 'tags',
    icon: 'tag',
    text: m.tagged({ tag }),
    name: tag,
    note: m.taggedCount({ count }),
    beside: [tag],
    href: `/?tags=${encodeURIComponent(written([tag]) ?? '')}`,
  }));
}

/** Something that is done to a server, or to all of a tag. */
interface Target {
  name: string;
  beside: readonly string[];
  server: Server | null;
  tag: string | null;
}

function done(asked: Asked, target: Target): Entry {
  const what = target.tag === null ? target.name : m.tag({ tag: target.tag });
  const refused = target.server && refusal(target.server, asked.kind === 'run' ? 'commands' : 'respond');
  const why = refused ? { refused, note: refused } : {};
  if (asked.kind === 'run') {
    const query = new URLSearchParams(target.server ? { server: target.server.id } : { tag: target.tag ?? '' });
    return { group: 'actions', icon: 'terminal', text: m.runOn({ what }), href: `/run?${query}`, ...why };
  }
  const minutes = asked.minutes ?? SILENCE_MINUTES;
  return {
    group: 'actions',
    icon: 'moon',
    text: m.silence({ what, length: lengthWords(minutes) }),
    id: target.server?.id ?? `#${target.tag}`,
    act: () => void silence({ what, serverId: target.server?.id ?? null, tag: target.tag, minutes }),
    ...why,
  };
}

/** What was asked in a sentence, for the servers and tags that it may mean. Without a name, the server that is shown is meant. */
function doneEntries(asked: Asked, servers: readonly Server[], here: Server | null): Found[] {
  const targets: Target[] = [...new Set(servers.flatMap((server) => server.tags))].map((tag) => ({
    name: tag,
    beside: [],
    server: null,
    tag,
  }));
  if (!asked.isTag)
    targets.push(...servers.map((server) => ({ name: server.name, beside: [server.host], server, tag: null })));
  const isHere = (target: Target) => here !== null && target.server?.id === here.id;
  return targets
    .flatMap((target) => {
      const fits = fit(asked.rest, target.name, target.beside);
      if (!fits) return [];
      return [{ target, score: fits.score + (asked.rest === '' && isHere(target) ? 100 : 0) }];
    })
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST_DONE)
    .map(({ target, score }) => ({ ...done(asked, target), score, at: [] }));
}

/** Of words around a name nothing is marked, though they find it. */
function markedIn(name: string, text: string, typed: string): number[] {
  const begin = text.lastIndexOf(name);
  const found = fit(typed, name, [text]);
  return found?.at.map((index) => begin + index) ?? [];
}

function matching(typed: string, entries: readonly Entry[]): Found[] {
  return entries
    .flatMap((entry) => {
      const fits = fit(typed, entry.text, entry.beside);
      if (!fits) return [];
      const at = entry.name === undefined ? fits.at : markedIn(entry.name, entry.text, typed);
      return [{ ...entry, ...fits, at }];
    })
    .sort((a, b) => b.score - a.score);
}

export interface Offer {
  groups: { group: Group; entries: Found[] }[];
  /** Servers that fit, and are not listed. */
  more: number;
}

/** What is offered for what was typed: groups, the one with the best entry first. */
export function offer(typed: string, servers: readonly Server[], hereId: string | null, means: Means): Offer {
  const here = servers.find((server) => server.id === hereId) ?? null;
  const listed = pageEntries();
  const fixed = [
    ...(here ? [...tabEntries(here, true), shareEntry(here)] : []),
    ...listed,
    ...otherPages(listed),
    ...actionEntries(means),
  ];
  if (typed.trim() === '') {
    const groups = grouped(fixed.map((entry) => ({ ...entry, score: 0, at: [] })));
    return { groups, more: 0 };
  }
  const asked = askedFor(typed, verbs());
  const found = matching(typed, servers.map(serverEntry));
  // "db logs": a part of a server that is not shown. Only the nearest servers have theirs listed.
  const parts = typed.trim().includes(' ') && found.length === 0 ? partsOf(typed, servers) : [];
  const all = [
    ...(asked ? doneEntries(asked, servers, here) : []),
    ...found.slice(0, MOST_SERVERS),
    ...parts.slice(0, MOST_SERVERS),
    ...matching(typed, tagEntries(servers)).slice(0, MOST_TAGS),
    ...matching(typed, fixed),
  ];
  const groups = grouped(all);
  // A sentence comes first: names that happen to have its letters do not stand in its way.
  if (!asked) groups.sort((a, b) => best(b.entries) - best(a.entries));
  return { groups, more: Math.max(0, found.length - MOST_SERVERS) };
}

function partsOf(typed: string, servers: readonly Server[]): Found[] {
  const others = typed.trim().split(/\s+/);
  const last = others.pop() ?? '';
  const named = servers.flatMap((server) => {
    const fits = fit(others.join(' '), server.name, server.tags);
    return fits ? [{ server, score: fits.score }] : [];
  });
  named.sort((a, b) => b.score - a.score);
  const near = named.slice(0, MOST_SERVERS).map(({ server }) => server);
  return near.flatMap((server) =>
    tabEntries(server, false)
      .filter((_, index) => fit(last, tabs[index]?.label() ?? ''))
      .flatMap((entry) => matching(typed, [entry])),
  );
}

const best = (entries: readonly Found[]) => Math.max(...entries.map(({ score }) => score));

/** In the order in which they come. */
function grouped(entries: readonly Found[]): Offer['groups'] {
  const groups = new Map<Group, Found[]>();
  for (const entry of entries) groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry]);
  return [...groups].map(([group, held]) => ({ group, entries: held }));
}

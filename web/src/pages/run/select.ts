import * as m from '#messages/run';
import type { Server, ServerStatus } from '../../api/types';
import { refusal } from '../../lib/access';
import { list } from '../../lib/format';
import { unable, type Unable } from '../server/commands/unable';

/** A server that can run commands now; or why it cannot. */
export interface Choice {
  id: string;
  name: string;
  host: string;
  tags: string[];
  why: Unable | null;
  /** Whom to ask, where the caller may not run commands there. */
  refused: string | null;
}

/** Whether it can be picked. A server that is only away may be back in a moment: it stays where it is until then. */
export const isPickable = ({ why }: Pick<Choice, 'why'>) => why === null || why === 'offline';

/** The servers, those that can be picked first, each half by name. */
export function choices(servers: { server: Server; status: ServerStatus }[]): Choice[] {
  return servers
    .map(({ server, status }) => ({
      id: server.id,
      name: server.name,
      host: server.host,
      tags: server.tags,
      why: unable(server, status, 'commands'),
      refused: refusal(server, 'commands'),
    }))
    .sort(
      (a, b) =>
        Number(!isPickable(a)) - Number(!isPickable(b)) || a.name.localeCompare(b.name, 'en', { numeric: true }),
    );
}

/** How many are picked, and of how many that can run commands now. One that goes away while it is picked counts in both. */
export function tally(all: readonly Choice[], picked: ReadonlySet<string>): { count: number; total: number } {
  const counted = all.filter((choice) => choice.why === null || picked.has(choice.id));
  return { count: counted.filter(({ id }) => picked.has(id)).length, total: counted.length };
}

/** More are not read in a question. */
const MOST_NAMED = 8;

/** `alpha, beta and 4 more`: where something runs. */
export function named(names: readonly string[]): string {
  const others = names.length - MOST_NAMED;
  return list(others > 0 ? [...names.slice(0, MOST_NAMED), m.others({ count: others })] : [...names]);
}

/** With these first, each part as it was. */
export function ledBy(all: readonly Choice[], first: ReadonlySet<string>): Choice[] {
  return [...all.filter(({ id }) => first.has(id)), ...all.filter(({ id }) => !first.has(id))];
}

/** Those whose name, host or tags have every word. */
export function found(all: Choice[], search: string): Choice[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return all;
  return all.filter((choice) => {
    const text = [choice.name, choice.host, ...choice.tags].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export interface TagChoice {
  tag: string;
  /** Servers that have it and can run commands now. */
  ids: string[];
  /** Servers that have it. */
  all: number;
}

export function tagsOf(all: Choice[]): TagChoice[] {
  const tags = new Map<string, TagChoice>();
  for (const choice of all) {
    for (const tag of choice.tags) {
      const known = tags.get(tag) ?? { tag, ids: [], all: 0 };
      known.all += 1;
      if (!choice.why) known.ids.push(choice.id);
      tags.set(tag, known);
    }
  }
  return [...tags.values()].sort((a, b) => a.tag.localeCompare(b.tag, 'en', { numeric: true }));
}

/** The picked ones with these, or without them if all of them were picked. */
export function toggled(picked: ReadonlySet<string>, ids: string[]): Set<string> {
  const next = new Set(picked);
  const areAll = ids.length > 0 && ids.every((id) => next.has(id));
  for (const id of ids) {
    if (areAll) next.delete(id);
    else next.add(id);
  }
  return next;
}

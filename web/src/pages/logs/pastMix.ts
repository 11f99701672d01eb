// A search in several logs at once: each agent searches its own, and what they find stands in the order of its time.
import { api, take } from '../../api/client';
import { failureOf, type Failure } from '../../api/failure';
import type { FoundLogs } from '../../api/types';
import { lineOf, type Line, type Origin } from '../../ui/log/lines';
import { parameters } from '../server/logs/source';
import type { Chosen } from './sources';

export interface Asked {
  q: string;
  isRegex: boolean;
  since: string | null;
  until: string | null;
  tail: number;
}

/** What became of the search in one log. */
export interface Outcome {
  chosen: Chosen;
  found: FoundLogs | null;
  failure: Failure | null;
}

export async function searchAll(chosen: readonly Chosen[], asked: Asked): Promise<Outcome[]> {
  return Promise.all(
    chosen.map(async (one): Promise<Outcome> => {
      try {
        return { chosen: one, found: await search(one, asked), failure: null };
      } catch (error) {
        return { chosen: one, found: null, failure: failureOf(error) };
      }
    }),
  );
}

function search({ serverId, source }: Chosen, { q, isRegex, since, until, tail }: Asked): Promise<FoundLogs> {
  return take(
    api.GET('/api/v1/logs/{server_id}', {
      params: {
        path: { server_id: serverId },
        query: {
          ...parameters(source),
          tail,
          ...(q && { q, regex: isRegex }),
          ...(since && { since }),
          ...(until && { until }),
        },
      },
    }),
  );
}

/** What was found, oldest first. A line without a time stands behind the one before it in its own log. */
export function mixed(
  outcomes: readonly Outcome[],
  originOf: (key: string) => Origin | undefined,
  offsetOf: (serverId: string) => number,
): Line[] {
  const all: { line: Line; order: number }[] = [];
  for (const { chosen, found } of outcomes) {
    const [origin, offset] = [originOf(chosen.key), offsetOf(chosen.serverId)];
    let order = -Infinity;
    for (const told of found?.lines ?? []) {
      const line = lineOf(told);
      if (origin) line.origin = origin;
      order = line.at === null ? order : line.at - offset;
      all.push({ line, order });
    }
  }
  return all.sort((a, b) => a.order - b.order || 0).map(({ line }) => line);
}

// What the form of a schedule holds: what is wrong with it, and what is sent. Pure.
import * as m from '#messages/schedules';
import type { Schedule, ScheduleIn, Severity } from '../../../api/types';
import { fromLocalSecond, toLocal } from '../../../lib/localtime';
import { MOST_RECURRING_MS } from '../../../signing/payload';
import { readCron, type CronFault } from './cron';
import { isZone, nextTimes } from './due';

export interface Input {
  name: string;
  serverIds: string[];
  tag: string | null;
  command: string;
  timeoutSeconds: number;
  concurrency: number;
  stopOnFailure: boolean;
  severity: Severity;
  cron: string;
  timeZone: string;
  /** As the service writes it; null where it never ends. */
  until: string | null;
}

/** What a new one begins with, and what another one has. */
export function inputOf(schedule: Schedule | null, zone: string): Input {
  return {
    name: schedule?.name ?? '',
    serverIds: schedule?.server_ids ?? [],
    tag: schedule?.tag ?? null,
    command: schedule?.command ?? '',
    timeoutSeconds: schedule?.timeout_seconds ?? 60,
    concurrency: schedule?.concurrency ?? 50,
    stopOnFailure: schedule?.stop_on_failure ?? false,
    severity: schedule?.severity ?? 'warning',
    cron: schedule?.cron ?? '0 3 * * *',
    timeZone: schedule?.time_zone ?? zone,
    until: schedule?.until ?? null,
  };
}

/** The end that the field says. It shows no seconds: while it says what it began with, the end stays as it was. */
export function endOf(text: string, before: string | null): string | null {
  const shown = toLocal(before);
  return text === shown || text === `${shown}:00` ? before : fromLocalSecond(text);
}

const CRON_FAULTS: Record<CronFault, () => string> = {
  fields: m.faultFields,
  syntax: m.faultSyntax,
  never: m.faultNever,
};

export type FaultyField = 'name' | 'command' | 'servers' | 'cron' | 'timeZone' | 'until';

/** What is wrong with each field, in words. `times` are the next at which it is due. */
export function faultsOf(
  input: Input,
  isSigned: boolean,
  now: number,
  times: readonly number[],
): Partial<Record<FaultyField, string>> {
  const faults: Partial<Record<FaultyField, string>> = {};
  if (input.name.trim() === '') faults.name = m.giveName();
  if (input.command.trim() === '') faults.command = m.giveCommand();
  if (input.serverIds.length === 0 && input.tag === null) faults.servers = m.pickServers();
  const cron = readCron(input.cron.trim());
  if ('fault' in cron) faults.cron = CRON_FAULTS[cron.fault]();
  if (!isZone(input.timeZone.trim())) faults.timeZone = m.faultZone();
  const until = input.until === null ? null : Date.parse(input.until);
  if (until !== null && until <= now) faults.until = m.untilPast();
  else if (until !== null && isSigned && until > now + MOST_RECURRING_MS - 60_000) faults.until = m.untilFar();
  else if (until !== null && !('fault' in cron) && !faults.timeZone && times.length === 0)
    faults.until = m.neverBefore();
  return faults;
}

/** The next times of what is written, without its end where that is wrong; none where it cannot be read. */
export function dueTimes(
  { cron, timeZone, until }: Pick<Input, 'cron' | 'timeZone' | 'until'>,
  now: number,
  count: number,
): number[] {
  const read = readCron(cron.trim());
  const zone = timeZone.trim();
  if ('fault' in read || !isZone(zone)) return [];
  const end = until === null ? null : Date.parse(until);
  return nextTimes(read, zone, now, count, end !== null && end > now ? end : null);
}

/** What is sent: with one blank between fields, as it is signed. */
export function bodyOf(input: Input): Required<Omit<ScheduleIn, 'signed' | 'enabled'>> {
  return {
    name: input.name.trim(),
    server_ids: input.serverIds.length > 0 ? input.serverIds : null,
    tag: input.tag,
    command: input.command,
    timeout_seconds: input.timeoutSeconds,
    concurrency: input.concurrency,
    stop_on_failure: input.stopOnFailure,
    severity: input.severity,
    cron: input.cron.trim().split(/ +/).join(' '),
    time_zone: input.timeZone.trim(),
    until: input.until,
  };
}

/** Whether what was signed holds no more: it names the command, its time limit, the servers and when it recurs. */
export function needsSigning(before: Schedule | null, input: Input): boolean {
  if (!before) return true;
  const body = bodyOf(input);
  const same = (one: readonly string[], other: readonly string[]) => one.every((id) => other.includes(id));
  return (
    before.command !== body.command ||
    before.timeout_seconds !== body.timeout_seconds ||
    before.cron !== body.cron ||
    before.time_zone !== body.time_zone ||
    (body.tag !== null && body.tag !== before.tag) ||
    // Fewer servers are named by the same payload.
    !same(body.server_ids ?? [], before.server_ids) ||
    // An end that is later than that of the signature needs a new one.
    (before.signed && (body.until === null || Date.parse(body.until) > Date.parse(before.until ?? '')))
  );
}

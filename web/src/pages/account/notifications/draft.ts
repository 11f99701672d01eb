// A channel as a form has it, and what becomes of it.
import * as m from '#messages/channels';
import type { Channel, ChannelIn, ChannelPatch } from '../../../api/types';
import { list } from '../../../lib/format';
import { SEVERITIES as SEVERITY_WORDS } from '../../alerts/severity';
import { kinds, knownSettings, NO_SETTINGS, settingsOf, type Kind, type SettingName, type Settled } from './kinds';

export type Severity = 'info' | 'warning' | 'critical';
export const SEVERITIES: Severity[] = ['info', 'warning', 'critical'];

export interface Draft {
  name: string;
  kind: Kind;
  settings: Settled;
  /** Whether the settings are entered again. Those of a new channel always are. */
  replaces: boolean;
  severities: Severity[];
  tags: string[];
  repeat_minutes: number;
  notify_recovery: boolean;
  enabled: boolean;
}

export function newDraft(kind: Kind): Draft {
  return {
    name: '',
    kind,
    settings: { ...NO_SETTINGS },
    replaces: true,
    severities: [...SEVERITIES],
    tags: [],
    repeat_minutes: 0,
    notify_recovery: true,
    enabled: true,
  };
}

export function draftOf(channel: Channel): Draft {
  return {
    name: channel.name,
    kind: channel.type,
    settings: knownSettings(channel),
    // Those that cannot be read any more must be given again.
    replaces: Boolean(channel.problem) && channel.type !== 'push',
    severities: SEVERITIES.filter((severity) => channel.severities.includes(severity)),
    tags: [...channel.tags],
    repeat_minutes: channel.repeat_minutes,
    notify_recovery: channel.notify_recovery,
    enabled: channel.enabled,
  };
}

export function bodyOf(draft: Draft): ChannelIn {
  return { ...fieldsOf(draft), type: draft.kind, settings: settingsOf(draft.kind, draft.settings) };
}

function fieldsOf({ name, severities, tags, repeat_minutes, notify_recovery, enabled }: Draft) {
  return { name: name.trim(), severities, tags, repeat_minutes, notify_recovery, enabled };
}

/** The same for a channel that is there: without settings where they stay. */
export function patchOf(draft: Draft): ChannelPatch {
  return draft.replaces ? bodyOf(draft) : fieldsOf(draft);
}

/** What must be given and is not, before the service has to say so. */
export function missingFrom(draft: Draft): ('name' | 'severities' | SettingName)[] {
  const settings = draft.replaces ? kinds[draft.kind].settings : [];
  const empty = settings.filter((setting) => !setting.optional && !draft.settings[setting.name].trim());
  return [
    ...(draft.name.trim() ? [] : ['name' as const]),
    ...(draft.severities.length ? [] : ['severities' as const]),
    ...empty.map((setting) => setting.name),
  ];
}

/** After how many minutes an alert can be repeated. */
export const REPEATS = [0, 15, 30, 60, 240, 720, 1440];

export function repeatWords(minutes: number): string {
  if (minutes === 0) return m.sentOnce();
  if (minutes % 1440 === 0) return minutes === 1440 ? m.daily() : m.everyDays({ count: minutes / 1440 });
  if (minutes % 60 === 0) return minutes === 60 ? m.hourly() : m.everyHours({ count: minutes / 60 });
  return m.everyMinutes({ count: minutes });
}

/** For which alerts a channel is, in words. */
export function reachWords(channel: Pick<Channel, 'severities' | 'tags'>): string {
  const tags = list(channel.tags);
  const isAll = channel.severities.length === SEVERITIES.length;
  if (isAll) return tags ? m.allOfTags({ tags }) : m.allOfAll();
  const severities = list(
    SEVERITIES.filter((one) => channel.severities.includes(one)).map((one) => SEVERITY_WORDS[one]()),
  );
  return tags ? m.someOfTags({ tags, severities }) : m.someOfAll({ severities });
}

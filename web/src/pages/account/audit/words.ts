// What an entry of the audit log says, in words: `demo changed the server web-1: name, tags`.
import type { AuditEntry } from '../../../api/types';
import { duration, plural } from '../../../lib/format';
import type { Tone } from '../../../ui/Badge.svelte';

export interface Words {
  /** What was done, from the verb on: `ran a command on`. */
  did: string;
  /** What is quoted as it is: a command. */
  quote?: string;
  /** More of it: `name, tags`. */
  more?: string;
}

/** Kinds of actions to choose from: each is the beginning of the actions it stands for. */
export const GROUPS: { prefix: string; label: string }[] = [
  { prefix: 'log', label: 'Sign-ins and sign-outs' },
  { prefix: 'session.', label: 'Sign-ins that were ended' },
  { prefix: 'user.', label: 'New accounts' },
  { prefix: 'profile.', label: 'Profile' },
  { prefix: 'password.', label: 'Passwords' },
  { prefix: 'server.', label: 'Servers' },
  { prefix: 'api_key.', label: 'API keys' },
  { prefix: 'command.', label: 'Commands' },
  { prefix: 'batch.', label: 'Commands on many' },
  { prefix: 'container.', label: 'Containers' },
  { prefix: 'terminal.', label: 'Terminals' },
  { prefix: 'alert.', label: 'Alerts' },
  { prefix: 'threshold.', label: 'Thresholds' },
  { prefix: 'silence.', label: 'Silences' },
  { prefix: 'channel.', label: 'Channels' },
];

const metrics: Record<string, string> = {
  cpu: 'CPU',
  memory: 'memory',
  swap: 'swap',
  disk: 'disk',
  load: 'load',
  network_in: 'incoming traffic',
  network_out: 'outgoing traffic',
  temperature: 'temperature',
  offline: 'being offline',
  container_state: 'containers',
  reboot: 'reboots',
};

type Detail = AuditEntry['detail'];

function text(detail: Detail, name: string): string | undefined {
  const value = detail[name];
  return typeof value === 'string' && value ? value : undefined;
}

function count(detail: Detail, name: string): number | undefined {
  const value = detail[name];
  return typeof value === 'number' ? value : undefined;
}

/** What a change names, and what it became where that is short. */
function changes(detail: Detail): string | undefined {
  const told = Object.entries(detail).map(([name, change]) => {
    const word = name.replaceAll('_', ' ');
    const to: unknown = typeof change === 'object' && change !== null && 'to' in change ? change.to : undefined;
    if (typeof to === 'boolean') return `${word}: ${to ? 'on' : 'off'}`;
    if (typeof to === 'number' || (typeof to === 'string' && to.length <= 60)) return `${word}: ${to || 'empty'}`;
    if (Array.isArray(to) && to.every((item) => typeof item === 'string')) return `${word}: ${to.join(', ') || 'none'}`;
    return word;
  });
  return told.length ? told.join(', ') : undefined;
}

function named(name: string | undefined): string {
  return name ? ` ${name}` : '';
}

function reachOf(entry: AuditEntry): string {
  if (entry.server_name) return ` for ${entry.server_name}`;
  const tag = text(entry.detail, 'tag');
  if (tag) return ` for servers tagged ${tag}`;
  return 'tag' in entry.detail && entry.detail.server_id === null ? ' for all servers' : '';
}

function thresholdOf(entry: AuditEntry): string {
  const metric = text(entry.detail, 'metric_type') ?? text(entry.detail, 'metric');
  return `${metric ? ` on ${metrics[metric] ?? metric}` : ''}${reachOf(entry)}`;
}

function withMore(did: string, more: string | undefined): Words {
  return more ? { did, more } : { did };
}

/** What an entry tells. An action that is not known yet is told by its name. */
export function wordsOf(entry: AuditEntry): Words {
  const { action, detail } = entry;
  const server = named(entry.server_name ?? undefined);
  const [kind = '', verb = ''] = action.split('.');
  switch (kind) {
    case 'login':
      return { did: entry.outcome === 'ok' ? 'signed in' : 'tried to sign in' };
    case 'logout':
      return { did: 'signed out' };
    case 'session':
      return withMore(
        'ended a sign-in',
        text(detail, 'reason') === 'token_reused' ? 'its token was used a second time' : undefined,
      );
    case 'user':
      return { did: 'made the account' };
    case 'profile':
      return withMore('changed the profile', changes(detail));
    case 'password': {
      const ended = count(detail, 'ended_sessions');
      const more = ended ? `${plural(ended, 'sign-in')} ended` : undefined;
      return withMore(verb === 'reset' ? 'set a new password' : 'changed the password', more);
    }
    case 'server':
      if (verb === 'create') return withMore(`added the server${server}`, text(detail, 'host'));
      if (verb === 'delete') return { did: `deleted the server${server}` };
      return withMore(`changed the server${server}`, changes(detail));
    case 'api_key': {
      const key = named(text(detail, 'name'));
      const of = entry.server_name ? ` of ${entry.server_name}` : '';
      return withMore(`${verb === 'create' ? 'created' : 'revoked'} the API key${key}${of}`, text(detail, 'prefix'));
    }
    case 'command':
      return commandWords(entry);
    case 'batch': {
      if (verb === 'cancel') return { did: 'cancelled a command on many servers' };
      const servers = count(detail, 'servers');
      const did = `ran a command on ${servers === undefined ? 'many servers' : plural(servers, 'server')}`;
      const command = text(detail, 'command');
      return command ? { did, quote: command } : { did };
    }
    case 'container': {
      const verbs: Record<string, string> = { stop: 'stopped', start: 'started', unpause: 'unpaused' };
      const on = entry.server_name ? ` on ${entry.server_name}` : '';
      const name = text(detail, 'name') ?? entry.target?.slice(0, 12);
      return { did: `${verbs[verb] ?? `${verb.replace(/e$/, '')}ed`} the container${named(name)}${on}` };
    }
    case 'terminal':
      return { did: `${entry.outcome === 'started' ? 'opened' : 'used'} a terminal on${server || ' a server'}` };
    case 'alert':
      return { did: `${verb === 'resolve' ? 'resolved' : 'acknowledged'} an alert${server && ` of${server}`}` };
    case 'threshold':
      if (verb === 'update') return withMore(`changed a threshold${thresholdOf(entry)}`, changes(detail));
      return { did: `${verb === 'create' ? 'added' : 'deleted'} a threshold${thresholdOf(entry)}` };
    case 'silence':
      if (verb === 'update') return withMore(`changed a silence${reachOf(entry)}`, changes(detail));
      return withMore(`${verb === 'create' ? 'added' : 'deleted'} a silence${reachOf(entry)}`, text(detail, 'reason'));
    case 'channel': {
      const channel = named(text(detail, 'name'));
      if (verb === 'update') return withMore('changed a channel', changes(detail));
      const verbs: Record<string, string> = { create: 'added', delete: 'deleted', test: 'tested' };
      return withMore(`${verbs[verb] ?? verb} the channel${channel}`, text(detail, 'destination'));
    }
    default:
      return { did: action };
  }
}

function commandWords(entry: AuditEntry): Words {
  const { detail } = entry;
  const on = ` on ${entry.server_name ?? 'a server'}`;
  if (entry.action === 'command.cancel') return { did: `cancelled a command${on}` };
  const command = text(detail, 'command');
  if (command) return { did: `ran a command${on}`, quote: command };
  const code = count(detail, 'exit_code');
  const took = count(detail, 'duration_ms');
  const told = [code !== undefined && `exit code ${code}`, took !== undefined && `after ${duration(took)}`];
  return withMore(`a command ended${on}`, told.filter(Boolean).join(' ') || undefined);
}

/** How it came out, in a word and a colour. */
export function outcomeWords(outcome: string): { label: string; tone: Tone } {
  if (outcome === 'ok') return { label: 'done', tone: 'ok' };
  if (outcome === 'started') return { label: 'started', tone: 'accent' };
  if (outcome === 'refused') return { label: 'refused', tone: 'warn' };
  const code = outcome.replace(/^failed:?\s*/, '').replaceAll('_', ' ');
  return { label: code && code !== 'failed' ? `failed: ${code}` : 'failed', tone: 'bad' };
}

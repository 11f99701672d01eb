// What an entry of the audit log says, in words: `demo changed the server web-1: name, tags`.
import type { AuditEntry } from '../../../api/types';
import * as m from '#messages/audit';
import { duration, shortId } from '../../../lib/format';
import type { Rich } from '../../../text/catalogue';
import type { Tone } from '../../../ui/Badge.svelte';

/** What was done, from the verb on, with the name of the server that it was done to: `ran a command on`. */
export type Did = Rich<'server'>;

export interface Words {
  did: Did;
  /** What is quoted as it is: a command. */
  quote?: string;
  /** More of it: `name, tags`. */
  more?: string;
}

/** Kinds of actions to choose from: each is the beginning of the actions it stands for. */
export const GROUPS: { prefix: string; label: () => string }[] = [
  { prefix: 'log', label: m.groupLog },
  { prefix: 'session.', label: m.groupSession },
  { prefix: 'user.', label: m.groupUser },
  { prefix: 'invitation.', label: m.groupInvitation },
  { prefix: 'identity.', label: m.groupIdentity },
  { prefix: 'profile.', label: m.groupProfile },
  { prefix: 'password.', label: m.groupPassword },
  { prefix: 'totp.', label: m.groupTotp },
  { prefix: 'passkey.', label: m.groupPasskey },
  { prefix: 'recovery_code.', label: m.groupRecovery },
  { prefix: 'second_factor.', label: m.groupFactors },
  { prefix: 'server.', label: m.groupServer },
  { prefix: 'api_key.', label: m.groupKey },
  { prefix: 'token.', label: m.groupToken },
  { prefix: 'enrolment.', label: m.groupEnrolment },
  { prefix: 'command.', label: m.groupCommand },
  { prefix: 'batch.', label: m.groupBatch },
  { prefix: 'approval.', label: m.groupApproval },
  { prefix: 'schedule.', label: m.groupSchedule },
  { prefix: 'rollout.', label: m.groupRollout },
  { prefix: 'agent.', label: m.groupAgent },
  { prefix: 'container.', label: m.groupContainer },
  { prefix: 'terminal.', label: m.groupTerminal },
  { prefix: 'event.', label: m.groupEvent },
  { prefix: 'alert.', label: m.groupAlert },
  { prefix: 'threshold.', label: m.groupRule },
  { prefix: 'silence.', label: m.groupSilence },
  { prefix: 'channel.', label: m.groupChannel },
  { prefix: 'view.', label: m.groupView },
  { prefix: 'dashboard.', label: m.groupDashboard },
  { prefix: 'grant.', label: m.groupGrant },
  { prefix: 'team.', label: m.groupTeam },
];

const metrics: Record<string, () => string> = {
  cpu: m.cpu,
  memory: m.memory,
  swap: m.swap,
  disk: m.disk,
  load: m.load,
  network_in: m.networkIn,
  network_out: m.networkOut,
  temperature: m.temperature,
  offline: m.offline,
  container_state: m.containers,
  reboot: m.reboots,
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

function inside(detail: Detail, name: string, field: string): string | undefined {
  const value: unknown = detail[name];
  if (typeof value !== 'object' || value === null) return undefined;
  return text(value as Detail, field);
}

/** What a change names, and what it became where that is short. */
function changes(detail: Detail): string | undefined {
  const told = Object.entries(detail).map(([field, change]) => {
    const name = field.replaceAll('_', ' ');
    const to: unknown = typeof change === 'object' && change !== null && 'to' in change ? change.to : undefined;
    if (typeof to === 'boolean') return m.changed({ name, value: to ? m.on() : m.off() });
    if (typeof to === 'number' || (typeof to === 'string' && to.length <= 60))
      return m.changed({ name, value: to ? String(to) : m.empty() });
    if (Array.isArray(to) && to.every((item) => typeof item === 'string'))
      return m.changed({ name, value: to.join(', ') || m.nothing() });
    return name;
  });
  return told.length ? told.join(', ') : undefined;
}

/** With what a threshold or a silence is for. */
function reaching(entry: AuditEntry, what: string): Did {
  if (entry.server_name) return m.forServer({ what, name: entry.server_name });
  const tag = text(entry.detail, 'tag');
  if (tag) return [m.forTag({ what, tag })];
  return ['tag' in entry.detail && entry.detail.server_id === null ? m.forAll({ what }) : what];
}

const RULES = {
  update: [m.changedRule, m.changedRuleOn],
  create: [m.addedRule, m.addedRuleOn],
  delete: [m.deletedRule, m.deletedRuleOn],
} as const;

function ruleWords(entry: AuditEntry, verb: string): Did {
  const [plain, on] = RULES[verb === 'update' || verb === 'create' ? verb : 'delete'];
  const metric = text(entry.detail, 'metric_type') ?? text(entry.detail, 'metric');
  return reaching(entry, metric ? on({ metric: metrics[metric]?.() ?? metric }) : plain());
}

/** By which means somebody proved who they are, where it was not the password alone. */
function meansOf(detail: Detail): string | undefined {
  const means: Record<string, () => string> = {
    password_otp: m.byCode,
    password_recovery_code: m.byRecoveryCode,
    otp: m.byCode,
    passkey: m.byPasskey,
  };
  return means[text(detail, 'means') ?? '']?.();
}

function withMore(did: Did, more: string | undefined): Words {
  return more ? { did, more } : { did };
}

const CONTAINER: Record<string, (values: { container: string; name: string }) => Did> = {
  start: m.startedContainer,
  stop: m.stoppedContainer,
  restart: m.restartedContainer,
  pause: m.pausedContainer,
  unpause: m.resumedContainer,
};

const APPROVAL: Record<string, () => string> = {
  create: m.askedForSignatures,
  sign: m.signedWaiting,
  run: m.startedSigned,
  reopen: m.reopenedWaiting,
  expire: m.expiredWaiting,
  withdraw: m.withdrewWaiting,
};

const SCHEDULE: Record<string, (values: { schedule: string }) => string> = {
  create: m.createdSchedule,
  update: m.changedSchedule,
  delete: m.deletedSchedule,
  run: m.ranSchedule,
  miss: m.missedSchedule,
};

const ROLLOUT: Record<string, (values: { version: string }) => string> = {
  pause: m.pausedRollout,
  resume: m.resumedRollout,
  cancel: m.cancelledRollout,
  end: m.endedRollout,
};

const CHANNEL: Record<string, (values: { channel: string }) => string> = {
  create: m.addedChannel,
  delete: m.deletedChannel,
  test: m.testedChannel,
};

/** How somebody signed in, where that was not by password. */
function byProvider(detail: Detail): string | undefined {
  return text(detail, 'by') === 'oidc' ? m.byProvider() : undefined;
}

function endReason(reason: string | undefined): string | undefined {
  if (reason === 'token_reused') return m.reused();
  return reason === 'provider_logout' ? m.providerLogout() : undefined;
}

/** What an entry says. An action that is not known yet is shown by its name. */
export function wordsOf(entry: AuditEntry): Words {
  const { action, detail } = entry;
  const name = entry.server_name ?? m.aServer();
  const [kind = '', verb = ''] = action.split('.');
  switch (kind) {
    case 'login':
      return withMore([entry.outcome === 'ok' ? m.signedIn() : m.triedSignIn()], byProvider(detail) ?? meansOf(detail));
    case 'logout':
      return { did: [m.signedOut()] };
    case 'session':
      if (verb === 'prove') return withMore([m.provedIdentity()], meansOf(detail));
      return withMore([m.endedSession()], endReason(text(detail, 'reason')));
    case 'totp':
      return { did: [verb === 'create' ? m.madeTotp() : m.removedTotp()] };
    case 'passkey': {
      const passkey = text(detail, 'name') ?? '';
      return { did: [verb === 'create' ? m.madePasskey({ passkey }) : m.removedPasskey({ passkey })] };
    }
    case 'recovery_code':
      return { did: [m.usedRecoveryCode()] };
    case 'second_factor':
      return { did: [m.resetFactors()] };
    case 'user':
      return withMore([userWords(entry, verb)], byProvider(detail));
    case 'invitation': {
      const invited = { name: text(detail, 'email') ?? m.anybody() };
      return { did: [(verb === 'revoke' ? m.revokedInvitation : m.invited)(invited)] };
    }
    case 'identity':
      return withMore([verb === 'link' ? m.identityLink() : m.identityUnlink()], text(detail, 'email'));
    case 'profile':
      return withMore([m.changedProfile()], changes(detail));
    case 'password': {
      const ended = count(detail, 'ended_sessions');
      const more = ended ? m.sessionsEnded({ count: ended }) : undefined;
      return withMore([verb === 'reset' ? m.setPassword() : m.changedPassword()], more);
    }
    case 'server':
      if (verb === 'create') return withMore(m.addedServer({ name }), text(detail, 'host'));
      if (verb === 'delete') return { did: m.deletedServer({ name }) };
      if (verb === 'transfer') return { did: m.tookOver({ name, to: text(detail, 'to') ?? '' }) };
      return withMore(m.changedServer({ name }), changes(detail));
    case 'api_key': {
      const write = verb === 'create' ? m.createdKey : m.revokedKey;
      return withMore(write({ key: text(detail, 'name') ?? '', name }), text(detail, 'prefix'));
    }
    case 'token': {
      const token = text(detail, 'name') ?? '';
      const did = [verb === 'create' ? m.createdToken({ token }) : m.revokedToken({ token })];
      return withMore(did, text(detail, 'prefix'));
    }
    case 'enrolment': {
      const enrolment = text(detail, 'name') ?? '';
      if (verb === 'use') return { did: m.usedEnrolment({ enrolment, name }) };
      const did = [verb === 'create' ? m.createdEnrolment({ enrolment }) : m.revokedEnrolment({ enrolment })];
      return withMore(did, text(detail, 'prefix'));
    }
    case 'command':
      return commandWords(entry, name);
    case 'approval':
    case 'schedule': {
      const schedule = text(detail, 'name') ?? '';
      const did = kind === 'approval' ? APPROVAL[verb]?.() : SCHEDULE[verb]?.({ schedule });
      const command = text(detail, 'command');
      return { did: [did ?? action], ...(command ? { quote: command } : {}) };
    }
    case 'batch': {
      if (verb === 'cancel') return { did: [m.cancelledBatch()] };
      const servers = count(detail, 'servers');
      const did = [servers === undefined ? m.ranOnMany() : m.ranOnCount({ count: servers })];
      const command = text(detail, 'command');
      return command ? { did, quote: command } : { did };
    }
    case 'rollout': {
      const version = text(detail, 'version') ?? '';
      const started = m.startedRollout({ version, count: count(detail, 'servers') ?? 0 });
      return withMore([verb === 'create' ? started : (ROLLOUT[verb]?.({ version }) ?? action)], text(detail, 'reason'));
    }
    case 'agent': {
      const write = entry.outcome === 'ok' ? m.updatedAgent : m.triedAgent;
      const reason = text(detail, 'reason')?.replaceAll('_', ' ');
      return withMore(write({ name, version: text(detail, 'version') ?? '' }), reason);
    }
    case 'container': {
      const container = text(detail, 'name') ?? shortId(entry.target ?? '');
      return { did: CONTAINER[verb]?.({ container, name }) ?? [action] };
    }
    case 'terminal':
      if (verb === 'replay') return { did: m.readRecording({ name }) };
      if (verb === 'detach') return { did: m.detachedTerminal({ name }) };
      if (verb === 'resume') return { did: m.resumedTerminal({ name }) };
      if (verb === 'recorded') return withMore(m.recordedTerminal({ name }), text(detail, 'sha256'));
      return { did: (entry.outcome === 'started' ? m.openedTerminal : m.usedTerminal)({ name }) };
    case 'alert':
      if (verb === 'note') return { did: m.notedAlert({ name }) };
      return { did: (verb === 'resolve' ? m.resolvedAlert : m.acknowledgedAlert)({ name }) };
    case 'event':
      return annotationWords(entry, verb, name);
    case 'threshold':
      return withMore(ruleWords(entry, verb), verb === 'update' ? changes(detail) : undefined);
    case 'silence':
      if (verb === 'update') return withMore(reaching(entry, m.changedSilence()), changes(detail));
      return withMore(
        reaching(entry, verb === 'create' ? m.addedSilence() : m.deletedSilence()),
        text(detail, 'reason'),
      );
    case 'channel':
      if (verb === 'update') return withMore([m.changedChannel()], changes(detail));
      return withMore(
        [CHANNEL[verb]?.({ channel: text(detail, 'name') ?? '' }) ?? action],
        text(detail, 'destination'),
      );
    case 'view':
      if (verb === 'update') return withMore([m.changedView()], changes(detail));
      return { did: [(verb === 'create' ? m.savedView : m.deletedView)({ name: text(detail, 'name') ?? '' })] };
    case 'dashboard':
      if (verb === 'update') return withMore([m.changedDashboard()], changes(detail));
      return {
        did: [(verb === 'create' ? m.addedDashboard : m.deletedDashboard)({ name: text(detail, 'name') ?? '' })],
      };
    case 'grant':
      return grantWords(entry, verb);
    case 'team':
      return teamWords(entry, verb);
    default:
      return { did: [action] };
  }
}

/** Who got a role, or lost it, and where: `granted bob the role operator (commands, logs) for web-1`. */
function grantWords(entry: AuditEntry, verb: string): Words {
  const { detail } = entry;
  const subject = inside(detail, 'subject', 'user') ?? inside(detail, 'subject', 'team') ?? '';
  const what = (verb === 'create' ? m.granted : m.endedGrant)({ subject, role: text(detail, 'role') ?? '' });
  const rights = Array.isArray(detail.rights) ? detail.rights.join(', ') : '';
  if (entry.server_name) return withMore(m.forServer({ what, name: entry.server_name }), rights);
  const tag = inside(detail, 'scope', 'tag');
  return withMore([tag ? m.forTag({ what, tag }) : m.forAll({ what })], rights);
}

function teamWords(entry: AuditEntry, verb: string): Words {
  const { detail } = entry;
  const [team, user] = [text(detail, 'name') ?? '', text(detail, 'user') ?? ''];
  if (verb === 'create') return { did: [m.createdTeam({ team })] };
  if (verb === 'delete') return { did: [m.deletedTeam({ team })] };
  if (verb === 'member_add') return { did: [m.addedMember({ user, team })] };
  if (verb === 'member_remove') return { did: [m.removedMember({ user, team })] };
  return withMore([m.renamedTeam()], changes(detail));
}

const USER: Record<string, (values: { name: string }) => string> = {
  disable: m.disabledAccount,
  enable: m.enabledAccount,
  promote: m.promotedAccount,
  demote: m.demotedAccount,
  delete: m.deletedAccount,
};

function userWords(entry: AuditEntry, verb: string): string {
  if (verb === 'delete' && entry.outcome !== 'ok') return m.triedDeleteAccount();
  return USER[verb]?.({ name: text(entry.detail, 'username') ?? '' }) ?? m.madeAccount();
}

function annotationWords({ detail }: AuditEntry, verb: string, name: string): Words {
  const isDeploy = detail.kind === 'deploy';
  const what = [text(detail, 'text'), text(detail, 'version')].filter(Boolean).join(', ');
  if (verb === 'delete') return withMore((isDeploy ? m.deletedDeploy : m.deletedNote)({ name }), what);
  const servers = count(detail, 'servers');
  if (servers !== undefined) return withMore([(isDeploy ? m.addedDeploys : m.addedNotes)({ count: servers })], what);
  return withMore((isDeploy ? m.addedDeploy : m.addedNote)({ name }), what);
}

function commandWords(entry: AuditEntry, name: string): Words {
  const { detail } = entry;
  if (entry.action === 'command.cancel') return { did: m.cancelledCommand({ name }) };
  const command = text(detail, 'command');
  if (command) return { did: m.ranCommand({ name }), quote: command };
  const code = count(detail, 'exit_code');
  const took = count(detail, 'duration_ms');
  const told = [
    ...(code === undefined ? [] : [m.exitCode({ code: String(code) })]),
    ...(took === undefined ? [] : [m.afterTime({ duration: duration(took) })]),
  ];
  return withMore(m.commandEnded({ name }), told.join(' ') || undefined);
}

/** How it came out, in a word and a colour. */
export function outcomeWords(outcome: string): { label: string; tone: Tone } {
  if (outcome === 'ok') return { label: m.done(), tone: 'ok' };
  if (outcome === 'started') return { label: m.started(), tone: 'accent' };
  if (outcome === 'refused') return { label: m.refused(), tone: 'warn' };
  const code = outcome.replace(/^failed:?\s*/, '').replaceAll('_', ' ');
  return { label: code && code !== 'failed' ? m.failedWith({ code }) : m.failed(), tone: 'bad' };
}

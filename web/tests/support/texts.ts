// What the interface says, by area and key, in English: a test names a text by its key, so that a sentence may become a
// better one without it.
import { speak, translated, type Rich } from '../../src/text/catalogue.ts';

export * as access from '#messages/access';
export * as account from '#messages/account';
export * as addServer from '#messages/addServer';
export * as alertList from '#messages/alertList';
export * as alertSentence from '#messages/alertSentence';
export * as alertWords from '#messages/alertWords';
export * as alerts from '#messages/alerts';
export * as allow from '#messages/allow';
export * as approvals from '#messages/approvals';
export * as app from '#messages/app';
export * as annotations from '#messages/annotations';
export * as audit from '#messages/audit';
export * as beats from '#messages/beats';
export * as channels from '#messages/channels';
export * as charts from '#messages/charts';
export * as commandParts from '#messages/commandParts';
export * as commands from '#messages/commands';
export * as containers from '#messages/containers';
export * as dashboards from '#messages/dashboards';
export * as explore from '#messages/explore';
export * as factors from '#messages/factors';
export * as firstLook from '#messages/firstLook';
export * as fleet from '#messages/fleet';
export * as help from '#messages/help';
export * as incident from '#messages/incident';
export * as install from '#messages/install';
export * as keys from '#messages/keys';
export * as liveLog from '#messages/liveLog';
export * as log from '#messages/log';
export * as logs from '#messages/logs';
export * as metrics from '#messages/metrics';
export * as mix from '#messages/mix';
export * as moment from '#messages/moment';
export * as notices from '#messages/notices';
export * as overview from '#messages/overview';
export * as palette from '#messages/palette';
export * as pulse from '#messages/pulse';
export * as recordings from '#messages/recordings';
export * as run from '#messages/run';
export * as schedules from '#messages/schedules';
export * as security from '#messages/security';
export * as server from '#messages/server';
export * as serverAlerts from '#messages/serverAlerts';
export * as settings from '#messages/settings';
export * as severity from '#messages/severity';
export * as shortcuts from '#messages/shortcuts';
export * as signers from '#messages/signers';
export * as signing from '#messages/signing';
export * as signIn from '#messages/signIn';
export * as silences from '#messages/silences';
export * as status from '#messages/status';
export * as share from '#messages/share';
export * as sharing from '#messages/sharing';
export * as teams from '#messages/teams';
export * as terminal from '#messages/terminal';
export * as thresholds from '#messages/thresholds';
export * as timeline from '#messages/timeline';
export * as tokens from '#messages/tokens';
export * as ui from '#messages/ui';
export * as unable from '#messages/unable';
export * as units from '#messages/units';
export * as updates from '#messages/updates';
export * as users from '#messages/users';
export * as wall from '#messages/wall';

/** A message with tags as it is read: without them. */
export function plain(text: Rich<string>): string {
  return text.map((part) => (typeof part === 'string' ? part : part[1])).join('');
}

/** What is read in another language. */
export async function spoken<T>(language: string, read: () => T): Promise<T> {
  speak(language, language);
  try {
    await translated();
    return read();
  } finally {
    speak('en', 'en-US');
  }
}

/** Finds a text in which something varies: `{}` in its place stands for whatever is there. */
export function like(text: string, flags = ''): RegExp {
  const parts = text.split('{}').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(parts.join('.*'), flags);
}

import * as m from '#messages/help';
import type { HelpTopic } from './help';

/** What the help is about, as a link to it says. */
export const helpWords: Record<HelpTopic, () => string> = {
  start: m.start,
  overview: m.overview,
  interface: m.webInterface,
  install: m.install,
  policy: m.policy,
  noAgent: m.noAgent,
  keys: m.keys,
  metrics: m.metrics,
  explore: m.explore,
  timeline: m.timeline,
  alerts: m.alerts,
  thresholds: m.thresholds,
  silences: m.silences,
  channels: m.channels,
  noAlert: m.noAlert,
  containers: m.containers,
  noContainers: m.noContainers,
  commands: m.commands,
  terminals: m.terminals,
  logs: m.logs,
  noLogs: m.noLogs,
  quotas: m.quotas,
  audit: m.audit,
  setup: m.setup,
  accounts: m.accounts,
  noSignIn: m.noSignIn,
  noConnection: m.noConnection,
  api: m.api,
};

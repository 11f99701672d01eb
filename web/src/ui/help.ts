import * as m from '#messages/help';

/**
 * Where the help says more: pages below `/help`, which the service has from the documents in `docs/`. A test looks each of
 * them up (build/help/site.test.ts).
 */
export const helpTopics = {
  start: { page: 'start', about: m.start },
  overview: { page: '', about: m.overview },
  interface: { page: 'guides/interface', about: m.webInterface },
  install: { page: 'guides/agents#install-an-agent', about: m.install },
  policy: { page: 'guides/agents#the-policy', about: m.policy },
  noAgent: { page: 'operate/troubleshooting#an-agent-does-not-connect', about: m.noAgent },
  keys: { page: 'operate/secrets#replace-an-agents-key', about: m.keys },
  metrics: { page: 'guides/metrics', about: m.metrics },
  explore: { page: 'guides/explore', about: m.explore },
  timeline: { page: 'guides/timeline', about: m.timeline },
  alerts: { page: 'guides/alerts#alerts', about: m.alerts },
  thresholds: { page: 'guides/alerts#thresholds', about: m.thresholds },
  silences: { page: 'guides/alerts#silences', about: m.silences },
  channels: { page: 'guides/alerts#channels', about: m.channels },
  noAlert: { page: 'operate/troubleshooting#no-alert-came', about: m.noAlert },
  containers: { page: 'guides/containers', about: m.containers },
  noContainers: { page: 'operate/troubleshooting#no-containers-are-shown', about: m.noContainers },
  commands: { page: 'guides/commands', about: m.commands },
  terminals: { page: 'guides/commands#terminals', about: m.terminals },
  logs: { page: 'guides/logs', about: m.logs },
  noLogs: { page: 'operate/troubleshooting#the-systems-log-is-empty-or-refused', about: m.noLogs },
  quotas: { page: 'operate/limits#quotas-of-an-account', about: m.quotas },
  audit: { page: 'operate/service#the-audit-log', about: m.audit },
  setup: { page: 'start#3-create-the-first-account', about: m.setup },
  sharing: { page: 'guides/sharing', about: m.sharing },
  accounts: { page: 'operate/accounts', about: m.accounts },
  noSignIn: { page: 'operate/troubleshooting#i-cannot-sign-in', about: m.noSignIn },
  noConnection: {
    page: 'operate/troubleshooting#pages-do-not-update-or-terminals-and-logs-do-not-open',
    about: m.noConnection,
  },
  api: { page: 'reference/api', about: m.api },
} as const satisfies Record<string, { page: string; about: () => string }>;

export type HelpTopic = keyof typeof helpTopics;

export function helpAddress(topic: HelpTopic): string {
  const { page } = helpTopics[topic];
  return page ? `/help/${page}` : '/help';
}

const OF_PAGES: Record<string, HelpTopic> = {
  '': 'interface',
  servers: 'interface',
  timeline: 'timeline',
  alerts: 'alerts',
  logs: 'logs',
  run: 'commands',
  explore: 'explore',
  dashboards: 'explore',
  account: 'interface',
};

const OF_PARTS: Record<string, Record<string, HelpTopic>> = {
  alerts: { thresholds: 'thresholds', silences: 'silences' },
  account: {
    notifications: 'channels',
    silences: 'silences',
    teams: 'sharing',
    audit: 'audit',
    security: 'noSignIn',
    about: 'api',
  },
  servers: {
    overview: 'metrics',
    containers: 'containers',
    logs: 'logs',
    commands: 'commands',
    terminal: 'terminals',
    alerts: 'thresholds',
    keys: 'keys',
    settings: 'policy',
  },
};

/** What the help has about a page of the interface. */
export function topicOf(path: string, query: URLSearchParams): HelpTopic {
  if (path === '/servers/new') return 'install';
  const [, page = '', second = '', third] = path.split('/');
  const part = page === 'servers' ? second && (third ?? 'overview') : page === 'alerts' ? query.get('view') : second;
  return own(own(OF_PARTS, page) ?? {}, part ?? '') ?? own(OF_PAGES, page) ?? 'overview';
}

/** What a table itself has under a name that anybody may type. */
function own<T>(table: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

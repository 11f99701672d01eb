/**
 * Where the help says more: pages below `/help`, which the service has from the documents in `docs/`. A test looks each of
 * them up (build/help/site.test.ts).
 */
export const helpTopics = {
  start: 'start',
  overview: '',
  interface: 'guides/interface',
  install: 'guides/agents#install-an-agent',
  policy: 'guides/agents#the-policy',
  updates: 'operate/agent-updates',
  noAgent: 'operate/troubleshooting#an-agent-does-not-connect',
  prometheus: 'guides/prometheus',
  keys: 'operate/secrets#replace-an-agents-key',
  metrics: 'guides/metrics',
  explore: 'guides/explore',
  timeline: 'guides/timeline',
  alerts: 'guides/alerts#alerts',
  thresholds: 'guides/alerts#thresholds',
  silences: 'guides/alerts#silences',
  channels: 'guides/alerts#channels',
  noAlert: 'operate/troubleshooting#no-alert-came',
  containers: 'guides/containers',
  noContainers: 'operate/troubleshooting#no-containers-are-shown',
  commands: 'guides/commands',
  terminals: 'guides/commands#terminals',
  recordings: 'guides/recordings',
  signing: 'guides/signed-commands',
  waiting: 'guides/signed-commands#wait-for-more-signatures',
  schedules: 'guides/schedules',
  logs: 'guides/logs',
  noLogs: 'operate/troubleshooting#the-systems-log-is-empty-or-refused',
  quotas: 'operate/limits#quotas-of-an-account',
  audit: 'operate/service#the-audit-log',
  setup: 'start#3-create-the-first-account',
  sharing: 'guides/sharing',
  accounts: 'operate/accounts',
  noSignIn: 'operate/troubleshooting#i-cannot-sign-in',
  noConnection: 'operate/troubleshooting#pages-do-not-update-or-terminals-and-logs-do-not-open',
  api: 'reference/api',
} as const satisfies Record<string, string>;

export type HelpTopic = keyof typeof helpTopics;

export function helpAddress(topic: HelpTopic): string {
  const page = helpTopics[topic];
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
  run: { waiting: 'waiting', schedules: 'schedules' },
  account: {
    notifications: 'channels',
    silences: 'silences',
    teams: 'sharing',
    tokens: 'prometheus',
    updates: 'updates',
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
  const part =
    page === 'servers'
      ? second && (third ?? 'overview')
      : ['alerts', 'run'].includes(page)
        ? query.get('view')
        : second;
  return own(own(OF_PARTS, page) ?? {}, part ?? '') ?? own(OF_PAGES, page) ?? 'overview';
}

/** What a table itself has under a name that anybody may type. */
function own<T>(table: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

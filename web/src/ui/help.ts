/**
 * Where the help says more: pages below `/help`, which the service has from the documents in `docs/`. A test looks each of
 * them up (build/help/site.test.ts).
 */
export const helpTopics = {
  start: { page: 'start', about: 'your first server' },
  overview: { page: '', about: 'Signalbox' },
  interface: { page: 'guides/interface', about: 'the web interface' },
  install: { page: 'guides/agents#install-an-agent', about: 'installing an agent' },
  policy: { page: 'guides/agents#the-policy', about: 'what an agent may do' },
  noAgent: { page: 'operate/troubleshooting#an-agent-does-not-connect', about: 'an agent that does not connect' },
  keys: { page: 'operate/secrets#replace-an-agents-key', about: 'keys of agents' },
  metrics: { page: 'guides/metrics', about: 'metrics' },
  alerts: { page: 'guides/alerts#alerts', about: 'alerts' },
  thresholds: { page: 'guides/alerts#thresholds', about: 'thresholds' },
  silences: { page: 'guides/alerts#silences', about: 'silences' },
  channels: { page: 'guides/alerts#channels', about: 'notification channels' },
  noAlert: { page: 'operate/troubleshooting#no-alert-came', about: 'alerts that did not arrive' },
  containers: { page: 'guides/containers', about: 'containers' },
  noContainers: { page: 'operate/troubleshooting#no-containers-are-shown', about: 'containers that are not shown' },
  commands: { page: 'guides/commands', about: 'commands' },
  terminals: { page: 'guides/commands#terminals', about: 'terminals' },
  logs: { page: 'guides/logs', about: 'logs' },
  noLogs: { page: 'operate/troubleshooting#the-systems-log-is-empty-or-refused', about: 'logs that cannot be read' },
  quotas: { page: 'operate/limits#quotas-of-an-account', about: 'limits of an account' },
  audit: { page: 'operate/service#the-audit-log', about: 'the audit log' },
  setup: { page: 'start#3-create-the-first-account', about: 'the first account' },
  noSignIn: { page: 'operate/troubleshooting#i-cannot-sign-in', about: 'problems with signing in' },
  noConnection: {
    page: 'operate/troubleshooting#pages-do-not-update-or-terminals-and-logs-do-not-open',
    about: 'lost connections',
  },
  api: { page: 'reference/api', about: 'the API' },
} as const satisfies Record<string, { page: string; about: string }>;

export type HelpTopic = keyof typeof helpTopics;

export function helpAddress(topic: HelpTopic): string {
  const { page } = helpTopics[topic];
  return page ? `/help/${page}` : '/help';
}

const OF_PAGES: Record<string, HelpTopic> = {
  '': 'interface',
  servers: 'interface',
  alerts: 'alerts',
  run: 'commands',
  account: 'interface',
};

const OF_PARTS: Record<string, Record<string, HelpTopic>> = {
  alerts: { thresholds: 'thresholds', silences: 'silences' },
  account: { notifications: 'channels', silences: 'silences', audit: 'audit', security: 'noSignIn', about: 'api' },
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

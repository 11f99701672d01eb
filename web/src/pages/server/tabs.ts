import type { Component } from 'svelte';
import type { IconName } from '../../ui/icons';
import type { ServerView } from './view.svelte';

/** A part of a server's page. Its component is loaded when it is first shown. */
export interface ServerTab {
  /** The last part of its address; the first tab has none. */
  name: string;
  label: string;
  icon: IconName;
  load: () => Promise<{ default: Component<{ view: ServerView }> }>;
}

export const tabs: ServerTab[] = [
  { name: '', label: 'Overview', icon: 'activity', load: () => import('./overview/Overview.svelte') },
  { name: 'containers', label: 'Containers', icon: 'box', load: () => import('./containers/Containers.svelte') },
  { name: 'logs', label: 'Logs', icon: 'list', load: () => import('./logs/Logs.svelte') },
  { name: 'commands', label: 'Commands', icon: 'play', load: () => import('./commands/Commands.svelte') },
  { name: 'terminal', label: 'Terminal', icon: 'terminal', load: () => import('./terminal/Terminal.svelte') },
  { name: 'alerts', label: 'Alerts', icon: 'bell', load: () => import('./alerts/ServerAlerts.svelte') },
  { name: 'keys', label: 'API Keys', icon: 'key', load: () => import('./keys/ApiKeys.svelte') },
  { name: 'settings', label: 'Settings', icon: 'settings', load: () => import('./settings/Settings.svelte') },
];

export function addressOf(id: string, tab: string): string {
  return `/servers/${encodeURIComponent(id)}${tab && `/${tab}`}`;
}

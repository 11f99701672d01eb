import * as m from '#messages/server';
import type { Component } from 'svelte';
import type { IconName } from '../../ui/icons';
import type { ServerView } from './view.svelte';

/** A part of a server's page. Its component is loaded when it is first shown. */
export interface ServerTab {
  /** The last part of its address; the first tab has none. */
  name: string;
  label: () => string;
  icon: IconName;
  load: () => Promise<{ default: Component<{ view: ServerView }> }>;
}

export const tabs: ServerTab[] = [
  { name: '', label: m.overview, icon: 'activity', load: () => import('./overview/Overview.svelte') },
  { name: 'containers', label: m.containers, icon: 'box', load: () => import('./containers/Containers.svelte') },
  { name: 'logs', label: m.logs, icon: 'list', load: () => import('./logs/Logs.svelte') },
  { name: 'commands', label: m.commands, icon: 'play', load: () => import('./commands/Commands.svelte') },
  { name: 'terminal', label: m.terminal, icon: 'terminal', load: () => import('./terminal/Terminal.svelte') },
  { name: 'alerts', label: m.alerts, icon: 'bell', load: () => import('./alerts/ServerAlerts.svelte') },
  { name: 'keys', label: m.keys, icon: 'key', load: () => import('./keys/ApiKeys.svelte') },
  { name: 'settings', label: m.settings, icon: 'settings', load: () => import('./settings/Settings.svelte') },
];

export function addressOf(id: string, tab: string): string {
  return `/servers/${encodeURIComponent(id)}${tab && `/${tab}`}`;
}

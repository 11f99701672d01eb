import * as m from '#messages/app';
import type { IconName } from '../ui/icons';

export interface Place {
  href: string;
  label: () => string;
  icon: IconName;
  /** Whether an address belongs to it. */
  owns: (path: string) => boolean;
}

/** What the rail shows. */
export const railPlaces: Place[] = [
  { href: '/', label: m.fleet, icon: 'grid', owns: (path) => path === '/' || path.startsWith('/servers') },
  { href: '/timeline', label: m.timeline, icon: 'history', owns: (path) => path === '/timeline' },
  { href: '/alerts', label: m.alerts, icon: 'bell', owns: (path) => path.startsWith('/alerts') },
  {
    href: '/explore',
    label: m.explore,
    icon: 'activity',
    owns: (path) => path.startsWith('/explore') || path.startsWith('/dashboards'),
  },
  { href: '/logs', label: m.logs, icon: 'list', owns: (path) => path.startsWith('/logs') },
  { href: '/run', label: m.run, icon: 'terminal', owns: (path) => path.startsWith('/run') },
  { href: '/account', label: m.account, icon: 'user', owns: (path) => path.startsWith('/account') },
];

/** What the bar of a phone has room for. */
export const OF_PHONES = ['/', '/alerts', '/run', '/account'];

/** What is behind "More" on a phone. */
export const morePlaces: Place[] = [
  ...railPlaces.filter(({ href }) => !OF_PHONES.includes(href)),
  { href: '/dashboards', label: m.dashboards, icon: 'grid', owns: () => false },
  { href: '/wall', label: m.wall, icon: 'monitor', owns: () => false },
];

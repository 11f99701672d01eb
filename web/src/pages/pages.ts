import * as m from '#messages/app';
import type { Page } from '../router/router.svelte';

/** Every page. The service serves the interface under the same addresses: src/http/web.rs. */
export const pages: Page[] = [
  { pattern: '/', title: m.fleet, load: () => import('./fleet/Fleet.svelte') },
  { pattern: '/servers', title: m.fleet, load: () => import('./fleet/Fleet.svelte') },
  { pattern: '/sign-in', title: m.signIn, load: () => import('./sign-in/SignIn.svelte'), bare: true, open: true },
  {
    pattern: '/register',
    title: m.createAccount,
    load: () => import('./sign-in/Register.svelte'),
    bare: true,
    open: true,
  },
  { pattern: '/servers/new', title: m.addServer, load: () => import('./add-server/AddServer.svelte') },
  { pattern: '/servers/:id/:tab?', title: m.server, load: () => import('./server/Server.svelte') },
  { pattern: '/timeline', title: m.timeline, load: () => import('./timeline/Timeline.svelte') },
  { pattern: '/alerts/:id?', title: m.alerts, load: () => import('./alerts/Alerts.svelte') },
  { pattern: '/logs', title: m.logs, load: () => import('./logs/Logs.svelte') },
  { pattern: '/run/:id?', title: m.bulkRun, load: () => import('./run/Run.svelte') },
  { pattern: '/account/:tab?', title: m.account, load: () => import('./account/Account.svelte') },
  { pattern: '/explore', title: m.explore, load: () => import('./explore/Explore.svelte') },
  { pattern: '/dashboards', title: m.dashboards, load: () => import('./dashboards/Dashboards.svelte') },
  { pattern: '/dashboards/:id', title: m.dashboards, load: () => import('./dashboards/Dashboard.svelte') },
  {
    pattern: '/dashboards/:id/wall',
    title: m.dashboards,
    load: () => import('./dashboards/DashboardWall.svelte'),
    bare: true,
  },
  { pattern: '/wall', title: m.wall, load: () => import('./wall/Wall.svelte'), bare: true },
];

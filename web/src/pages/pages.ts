import type { Page } from '../router/router.svelte';

/** Every page. The service serves the interface under the same addresses: src/http/web.rs. */
export const pages: Page[] = [
  { pattern: '/', title: 'Fleet', load: () => import('./fleet/Fleet.svelte') },
  { pattern: '/servers', title: 'Fleet', load: () => import('./fleet/Fleet.svelte') },
  { pattern: '/sign-in', title: 'Sign in', load: () => import('./sign-in/SignIn.svelte'), bare: true, open: true },
  {
    pattern: '/register',
    title: 'Create account',
    load: () => import('./sign-in/Register.svelte'),
    bare: true,
    open: true,
  },
  { pattern: '/servers/new', title: 'Add server', load: () => import('./add-server/AddServer.svelte') },
  { pattern: '/servers/:id/:tab?', title: 'Server', load: () => import('./server/Server.svelte') },
  { pattern: '/alerts/:id?', title: 'Alerts', load: () => import('./alerts/Alerts.svelte') },
  { pattern: '/run/:id?', title: 'Run on many', load: () => import('./run/Run.svelte') },
  { pattern: '/account/:tab?', title: 'Account', load: () => import('./account/Account.svelte') },
  { pattern: '/wall', title: 'Wall', load: () => import('./wall/Wall.svelte'), bare: true },
];

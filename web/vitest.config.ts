import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  // As in a browser: the server's half of Svelte knows no effects.
  resolve: { conditions: ['browser'] },
  test: { include: ['{src,help,build,pictures}/**/*.test.ts'], environment: 'jsdom' },
});

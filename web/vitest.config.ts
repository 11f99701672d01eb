import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  // As in a browser: the server's half of Svelte knows no effects.
  resolve: { conditions: ['browser'] },
  test: {
    include: ['{src,help,build,pictures}/**/*.test.ts'],
    // A document takes a quarter of a second to make. A test that needs one begins with `// @vitest-environment jsdom`.
    environment: 'node',
    // Far over what anything takes here, so that only a hang ends in it, on a busy machine too.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

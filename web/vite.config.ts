import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { codeSplitting } from './build/chunks.ts';
import { compress } from './build/compress.ts';
import { help } from './build/help/plugin.ts';
import { messages } from './build/messages.mjs';
import { pages } from './build/pages.ts';

/** Where `npm run dev` finds a service. */
const service = process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:8000';

export default defineConfig({
  plugins: [svelte(), help(), pages(), compress(), messages()],
  build: {
    target: ['chrome123', 'firefox128', 'safari17.5'],
    // The service's Content-Security-Policy knows no `data:` but for images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting } },
  },
  server: {
    proxy: {
      '/api': { target: service, ws: true },
      '/install': service,
      '/docs': service,
      '/redoc': service,
      '/openapi.json': service,
    },
  },
});

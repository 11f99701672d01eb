import { existsSync } from 'node:fs';
import { preview, type Plugin } from 'vite';
import { join } from 'node:path';

export interface Front {
  address: string;
  /** Whether the service is away, and so are its files. */
  isAway: boolean;
  close(): Promise<void>;
}

/**
 * The interface as `npm run build` has just written it, before a service: `SIGNALBOX_WEB_FRONT` names the directory. It
 * spares compiling the service while a page is being made; without it the pages are those in the binary.
 */
export async function startFront(directory: string, service: string): Promise<Front> {
  const policy = (await fetch(service)).headers.get('content-security-policy') ?? '';
  const paths = ['/api', '/install', '/docs', '/redoc', '/openapi.json'];
  const front: Front = { address: '', isAway: false, close: () => server.close() };
  const outage: Plugin = {
    name: 'outage',
    configurePreviewServer: ({ middlewares }) => {
      middlewares.use((request, _, next) => (front.isAway ? request.socket.destroy() : next()));
      middlewares.use((request, _, next) => {
        request.url = pageAt(directory, request.url ?? '/');
        next();
      });
    },
  };
  const server = await preview({
    configFile: false,
    plugins: [outage],
    logLevel: 'silent',
    root: join(import.meta.dirname, '../..'),
    build: { outDir: directory },
    preview: {
      host: '127.0.0.1',
      port: 0,
      allowedHosts: true,
      headers: { 'Content-Security-Policy': policy },
      proxy: Object.fromEntries(paths.map((path) => [path, { target: service, ws: true }])),
    },
  });
  const bound = server.httpServer.address();
  if (bound === null || typeof bound === 'string') throw new Error('the front listens nowhere');
  front.address = `http://127.0.0.1:${bound.port}`;
  return front;
}

/** The file of the page at an address, as the service finds it: src/http/web.rs. Other addresses are as they were. */
function pageAt(directory: string, url: string): string {
  const [path = '', query] = url.split('?');
  const name = path.replace(/^\/|\/$/g, '') || 'index';
  const [kind, , ...rest] = name.split('/');
  const page = [name, [kind, '_', ...rest].join('/')]
    .map((each) => `/pages/${each}.html`)
    .find((file) => existsSync(join(directory, file)));
  return page ? page + (query ? `?${query}` : '') : url;
}

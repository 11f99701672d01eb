import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/** What is text; images are compressed already. */
const COMPRESSIBLE = /\.(html|js|css|svg|json|txt|webmanifest)$/;

/** Writes each file once more as `.br` and `.gz`, as good as it gets: the service sends them as they are. */
export function compress(): Plugin {
  let directory = 'dist';
  return {
    name: 'compress',
    apply: 'build',
    configResolved(config) {
      directory = config.build.outDir;
    },
    closeBundle() {
      // Nothing was built; the error that is about to be shown says why.
      if (!existsSync(directory)) return;
      for (const path of files(directory).filter((path) => COMPRESSIBLE.test(path))) {
        const bytes = readFileSync(path);
        const quality = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: quality }));
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
      }
    },
  };
}

function files(directory: string): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

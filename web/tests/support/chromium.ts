// The browsers of the tests. Debian's `chromium-headless-shell` is the engine without the windows, tabs and services of a whole
// browser around it: the tests take a quarter less of the processor with it.
import { existsSync } from 'node:fs';

const SHELL = '/usr/bin/chromium-headless-shell';

/** For what the engine alone lacks: push messages and the notifications of a worker. */
export const WHOLE_CHROMIUM = process.env.SIGNALBOX_CHROMIUM ?? '/usr/bin/chromium';

export const CHROMIUM = process.env.SIGNALBOX_CHROMIUM ?? (existsSync(SHELL) ? SHELL : WHOLE_CHROMIUM);

// The tests that also run in Firefox: each page, and each way in which the interface depends on the engine of its browser. Running all
// of them twice would double the time of the tests and find little more.
//
// Others could not run there, because Playwright's way to Debian's Firefox (WebDriver BiDi) lacks what they use: touch, emulated
// media (dark, print, less motion), the protocol for developers, sockets and downloads that a test can see, and `fill` in a field of
// numbers or of an e-mail address, which adds to what stands there. axe takes a minute a page.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The beginnings of their titles, by file; a file without any is run whole. */
export const IN_FIREFOX: Record<string, string[]> = {
  account: ['a channel is added, and', 'who silences alerts'],
  alerts: ['an agent that goes away', 'what is zoomed to'],
  annotations: ['a deploy is written'],
  approvals: ['the signature of a colleague'],
  charts: ['charts continue on their own', 'the cursor is the same time'],
  'charts-time': [
    'the time at the cursor',
    'a drag zooms',
    'arrows and keys',
    'a range is typed in words',
    'the day before is drawn',
    'an event stands on the time axis',
  ],
  clipboard: [],
  commands: ['what a command writes', 'a command is cancelled', 'what was run stands', 'a time limit'],
  connection: [
    'a page that is opened while',
    'a page that is first opened while',
    'a page of another version',
    'a dialog whose file',
    'a form that could not',
    'a server whose agent',
  ],
  containers: ['a container is restarted after'],
  explore: ['a chart is chosen', 'the top lines are kept'],
  fleet: [
    'numbers of a server',
    'a server that is added',
    'servers are narrowed',
    'a person who types its name',
    'what is changed of a server',
  ],
  'fleet-table': ['columns are chosen with the keyboard', 'a long table builds few rows'],
  incident: ['an alert is an incident'],
  keyboard: [],
  links: ['each tab of a server'],
  logs: [
    'a line that is written after',
    'what is searched for is marked',
    'twenty thousand lines',
    'lines over time',
    'a log is found in the list',
  ],
  mix: ['two logs stand'],
  notices: ['a new alert appears'],
  onboarding: ['from nothing to'],
  recordings: ['many recordings come'],
  run: ['a command runs on many'],
  schedules: ['missed runs'],
  session: [
    'a sign-in that has ended leads',
    'who is not signed in is led',
    'a wrong password is refused',
    'signing out in one tab',
    'a sign-in that is ended elsewhere',
  ],
  terminal: ['what is typed', 'keys belong', 'a terminal is refused'],
  'time-field': ['the same range by 12'],
  timeline: ['the map is read', 'a click on the map'],
  updates: ['a rollout stops'],
  wall: ['the wall shows every'],
};

/** Matches what Playwright calls them: its project, the file and the title. */
export function inFirefox(): RegExp {
  const plain = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const files = Object.entries(IN_FIREFOX).map(([file, titles]) => {
    const source = readFileSync(join(import.meta.dirname, `../${file}.spec.ts`), 'utf8');
    const gone = titles.find((title) => !source.includes(`test('${title}`) && !source.includes(`test("${title}`));
    if (gone) throw new Error(`${file}.spec.ts has no test that begins with "${gone}"`);
    return `${plain(file)}\\.spec\\.ts (${titles.map(plain).join('|')})`;
  });
  return new RegExp(`(^|[ /])(${files.join('|')})`);
}

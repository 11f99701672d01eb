import { expect, test } from 'vitest';
import type { Channel } from '../../../api/types';
import { bodyOf, draftOf, missingFrom, newDraft, patchOf, reachWords, repeatWords } from './draft';
import { addressesOf, kindNames, kinds, NO_SETTINGS, settingsOf } from './kinds';

const channel: Channel = {
  id: '019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10',
  name: 'phone',
  type: 'ntfy',
  enabled: true,
  destination: 'ntfy.sh',
  severities: ['warning', 'critical'],
  tags: ['production'],
  repeat_minutes: 30,
  notify_recovery: true,
  problem: null,
  created_at: '2026-11-20T09:30:00.123Z',
  updated_at: '2026-11-20T09:30:00.123Z',
};

test('a new channel is sent whole, without settings that were left empty', () => {
  const draft = { ...newDraft('ntfy'), name: ' phone ', settings: { ...NO_SETTINGS, url: ' https://ntfy.sh/x ' } };

  expect(bodyOf(draft)).toEqual({
    name: 'phone',
    type: 'ntfy',
    settings: { url: 'https://ntfy.sh/x' },
    severities: ['info', 'warning', 'critical'],
    tags: [],
    repeat_minutes: 0,
    notify_recovery: true,
    enabled: true,
  });
});

test('a change leaves the settings where they are, unless they are entered again', () => {
  const draft = draftOf(channel);

  expect(patchOf(draft)).not.toHaveProperty('settings');
  expect(patchOf(draft)).not.toHaveProperty('type');

  const replaced = { ...draft, replaces: true, settings: { ...NO_SETTINGS, url: 'https://ntfy.sh/y', token: 't' } };
  expect(patchOf(replaced).settings).toEqual({ url: 'https://ntfy.sh/y', token: 't' });
});

test('settings that cannot be read any more must be given again', () => {
  expect(draftOf({ ...channel, problem: 'encrypted with another key' }).replaces).toBe(true);
});

test('what must be given is known before it is sent', () => {
  expect(missingFrom({ ...newDraft('telegram'), severities: [] })).toEqual([
    'name',
    'severities',
    'bot_token',
    'chat_id',
  ]);
  expect(missingFrom(draftOf(channel))).toEqual([]);
});

test('what is known of settings is there to be changed', () => {
  expect(draftOf({ ...channel, type: 'email', destination: 'a@x.example, b@x.example' }).settings.to).toBe(
    'a@x.example, b@x.example',
  );
  expect(draftOf({ ...channel, type: 'telegram', destination: '-100' }).settings.chat_id).toBe('-100');
});

test('each kind sends what it asks for, and nothing else', () => {
  const all = { url: 'u', secret: 's', to: 'a@x.example', bot_token: 'b', chat_id: 'c', token: 't' };

  for (const kind of kindNames) {
    const asked = kinds[kind].settings.map((setting) => setting.name).sort();
    expect(Object.keys(settingsOf(kind, all)).sort(), kind).toEqual(asked);
  }
});

test('addresses may be typed as people do', () => {
  expect(addressesOf(' a@x.example, b@x.example;\nc@x.example ')).toEqual([
    'a@x.example',
    'b@x.example',
    'c@x.example',
  ]);
});

test('words say what a channel is for', () => {
  expect(reachWords(channel)).toBe('Alerts from servers tagged production: warning and critical');
  expect(reachWords({ severities: ['info', 'warning', 'critical'], tags: [] })).toBe('All alerts from all servers');
  expect(repeatWords(0)).toBe('once');
  expect(repeatWords(45)).toBe('again every 45 min');
  expect(repeatWords(60)).toBe('again every hour');
  expect(repeatWords(2880)).toBe('again every 2 days');
});

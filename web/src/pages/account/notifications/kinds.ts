// The kinds of channels: what each is called, and which settings it asks for. The service tells no settings again.
import * as m from '#messages/channels';
import type { Channel, ChannelIn } from '../../../api/types';

export type Kind = Channel['type'];
export type Settings = ChannelIn['settings'];
export type SettingName = 'url' | 'secret' | 'to' | 'bot_token' | 'chat_id' | 'token';
export type Settled = Record<SettingName, string>;

export interface Setting {
  name: SettingName;
  label: () => string;
  hint?: () => string;
  /** An example of what is typed. */
  placeholder?: string | (() => string);
  optional?: boolean;
  /** Shown as dots while it is typed. */
  secret?: boolean;
}

export interface KindInfo {
  label: () => string;
  /** What it is, and where its settings are found. */
  text: () => string;
  settings: Setting[];
}

export const NO_SETTINGS: Settled = { url: '', secret: '', to: '', bot_token: '', chat_id: '', token: '' };

const incoming = (placeholder: string): Setting => ({
  name: 'url',
  label: m.webhookAddress,
  placeholder,
  hint: m.webhookHint,
  secret: true,
});

export const kinds: Record<Kind, KindInfo> = {
  webhook: {
    label: m.webhook,
    text: m.webhookText,
    settings: [
      { name: 'url', label: m.address, placeholder: 'https://example.com/alerts' },
      {
        name: 'secret',
        label: m.secret,
        optional: true,
        secret: true,
        hint: m.secretHint,
      },
    ],
  },
  email: {
    label: m.email,
    text: m.emailText,
    settings: [{ name: 'to', label: m.addresses, placeholder: 'ada@example.com', hint: m.addressesHint }],
  },
  slack: {
    label: () => 'Slack',
    text: m.slackText,
    settings: [incoming('https://hooks.slack.com/services/…')],
  },
  discord: {
    label: () => 'Discord',
    text: m.discordText,
    settings: [incoming('https://discord.com/api/webhooks/…')],
  },
  teams: {
    label: () => 'Microsoft Teams',
    text: m.teamsText,
    settings: [incoming('https://….logic.azure.com/workflows/…')],
  },
  telegram: {
    label: () => 'Telegram',
    text: m.telegramText,
    settings: [
      { name: 'bot_token', label: m.botToken, placeholder: '123456:ABC-…', secret: true },
      { name: 'chat_id', label: m.chat, placeholder: m.chatExample, hint: m.chatHint },
      {
        name: 'url',
        label: m.botApi,
        optional: true,
        placeholder: 'https://api.telegram.org',
        hint: m.botApiHint,
      },
    ],
  },
  ntfy: {
    label: () => 'ntfy',
    text: m.ntfyText,
    settings: [
      {
        name: 'url',
        label: m.topic,
        placeholder: 'https://ntfy.sh/a-topic-nobody-guesses',
        hint: m.topicHint,
      },
      { name: 'token', label: m.accessToken, optional: true, secret: true },
    ],
  },
  gotify: {
    label: () => 'Gotify',
    text: m.gotifyText,
    settings: [
      { name: 'url', label: m.server, placeholder: 'https://gotify.example.com' },
      { name: 'token', label: m.appToken, secret: true },
    ],
  },
  push: { label: m.browser, text: m.browserText, settings: [] },
};

/** Those that a form can make. A browser makes its own channel (Browser.svelte): nobody types a subscription. */
export const kindNames: Kind[] = ['email', 'ntfy', 'slack', 'discord', 'teams', 'telegram', 'gotify', 'webhook'];

/** Addresses that were typed with commas, blanks or lines between them. */
export function addressesOf(text: string): string[] {
  return text.split(/[\s,;]+/).filter(Boolean);
}

/** The settings of a kind as the service takes them. What is left empty and may be is left out. */
export function settingsOf(kind: Kind, given: Settled): Settings {
  const text = (name: SettingName) => given[name].trim();
  const maybe = <N extends SettingName>(name: N): { [K in N]?: string } => {
    const found: { [K in N]?: string } = {};
    if (text(name)) found[name] = text(name);
    return found;
  };
  switch (kind) {
    case 'email':
      return { to: addressesOf(given.to) };
    case 'slack':
    case 'discord':
    case 'teams':
      return { url: text('url') };
    case 'telegram':
      return { bot_token: text('bot_token'), chat_id: text('chat_id'), ...maybe('url') };
    case 'ntfy':
      return { url: text('url'), ...maybe('token') };
    case 'gotify':
      return { url: text('url'), token: text('token') };
    case 'webhook':
      return { url: text('url'), ...maybe('secret') };
    case 'push':
      throw new Error('a browser gives these itself');
  }
}

/** What of the settings of a channel is known: what may be shown of them. */
export function knownSettings(channel: Channel): Settled {
  switch (channel.type) {
    case 'email':
      return { ...NO_SETTINGS, to: channel.destination };
    case 'telegram':
      return { ...NO_SETTINGS, chat_id: channel.destination };
    default:
      return { ...NO_SETTINGS };
  }
}

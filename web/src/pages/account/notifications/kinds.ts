// The kinds of channels: what each is called, and which settings it asks for. The service tells no settings again.
import type { Channel, ChannelIn } from '../../../api/types';

export type Kind = Channel['type'];
export type Settings = ChannelIn['settings'];
export type SettingName = 'url' | 'secret' | 'to' | 'bot_token' | 'chat_id' | 'token';
export type Settled = Record<SettingName, string>;

export interface Setting {
  name: SettingName;
  label: string;
  hint?: string;
  placeholder?: string;
  optional?: boolean;
  /** Shown as dots while it is typed. */
  secret?: boolean;
}

export interface KindInfo {
  label: string;
  /** What it is, and where its settings are found. */
  text: string;
  settings: Setting[];
}

export const NO_SETTINGS: Settled = { url: '', secret: '', to: '', bot_token: '', chat_id: '', token: '' };

const incoming = (placeholder: string): Setting => ({
  name: 'url',
  label: 'Webhook address',
  placeholder,
  hint: 'Anyone who has it can write there: it is kept encrypted and never shown again.',
  secret: true,
});

export const kinds: Record<Kind, KindInfo> = {
  webhook: {
    label: 'Webhook',
    text: 'Our own JSON to an address of yours, signed.',
    settings: [
      { name: 'url', label: 'Address', placeholder: 'https://example.com/alerts' },
      {
        name: 'secret',
        label: 'Signing secret',
        optional: true,
        secret: true,
        hint: '16 characters or more. Left empty, the service makes one and shows it once.',
      },
    ],
  },
  email: {
    label: 'E-mail',
    text: 'Through the mail server of this service.',
    settings: [
      { name: 'to', label: 'Addresses', placeholder: 'ada@example.com', hint: 'Up to 10, with commas between them.' },
    ],
  },
  slack: {
    label: 'Slack',
    text: 'An incoming webhook of a Slack app: api.slack.com/apps, Incoming Webhooks.',
    settings: [incoming('https://hooks.slack.com/services/…')],
  },
  discord: {
    label: 'Discord',
    text: 'A webhook of a channel: Edit channel, Integrations, Webhooks.',
    settings: [incoming('https://discord.com/api/webhooks/…')],
  },
  teams: {
    label: 'Microsoft Teams',
    text: 'A workflow that posts to a channel when a webhook request is received.',
    settings: [incoming('https://….logic.azure.com/workflows/…')],
  },
  telegram: {
    label: 'Telegram',
    text: 'A bot of yours, made by @BotFather, that is a member of the chat.',
    settings: [
      { name: 'bot_token', label: 'Bot token', placeholder: '123456:ABC-…', secret: true },
      { name: 'chat_id', label: 'Chat', placeholder: '-1001234567890 or @name', hint: 'Its number, or @name.' },
      {
        name: 'url',
        label: 'Address of the Bot API',
        optional: true,
        placeholder: 'https://api.telegram.org',
        hint: 'Only for a Bot API server of your own.',
      },
    ],
  },
  ntfy: {
    label: 'ntfy',
    text: 'Push messages to phones, from ntfy.sh or a server of your own.',
    settings: [
      {
        name: 'url',
        label: 'Topic address',
        placeholder: 'https://ntfy.sh/a-topic-nobody-guesses',
        hint: 'With the topic at its end. On a public server choose one that nobody guesses.',
      },
      { name: 'token', label: 'Access token', optional: true, secret: true },
    ],
  },
  gotify: {
    label: 'Gotify',
    text: 'Push messages from a Gotify server of your own.',
    settings: [
      { name: 'url', label: 'Server', placeholder: 'https://gotify.example.com' },
      { name: 'token', label: 'App token', secret: true },
    ],
  },
};

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

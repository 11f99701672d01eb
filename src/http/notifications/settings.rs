//! The settings of a channel in requests: each kind has other fields.

use deserr::{Deserr, IntoValue, Value, ValueKind, ValuePointerRef};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::http::extract::fault::{Faults, not_a_member, wrong_kind};
use crate::http::extract::field::{Email, FILLED_LINE, bounded, described, line, string, text_field};
use crate::notify::channel::{KINDS, Settings};
use crate::notify::push::Subscriber;

/// The most addresses of one channel.
const MAX_RECIPIENTS: usize = 10;

const TOKEN: &str = "^[!-~]+$";
const BOT_TOKEN: &str = "^[A-Za-z0-9_:-]+$";
const CHAT: &str = "^[A-Za-z0-9_@-]+$";
const BASE64_URL: &str = "^[A-Za-z0-9_-]+={0,2}$";

text_field!(
    /// The address of a web service, which often contains its secret.
    ServiceUrl(SecretString),
    |text, location| line(text, 1, 2_000, location).map(SecretString::from),
    json!({ "type": "string", "format": "uri", "minLength": 1, "maxLength": 2_000, "pattern": FILLED_LINE })
);

text_field!(
    /// The token that identifies a sender to a service.
    AppToken(SecretString),
    |text, location| matching(text, 1, 500, |c| c.is_ascii_graphic(), TOKEN, location).map(SecretString::from),
    json!({ "type": "string", "minLength": 1, "maxLength": 500, "pattern": TOKEN })
);

text_field!(
    /// The secret that signs messages.
    SigningSecret(SecretString),
    |text, location| matching(text, 16, 200, |c| c.is_ascii_graphic(), TOKEN, location).map(SecretString::from),
    json!({ "type": "string", "minLength": 16, "maxLength": 200, "pattern": TOKEN })
);

text_field!(
    /// A Telegram bot's token. It becomes part of a path.
    BotToken(SecretString),
    |text, location| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
        matching(text, 1, 200, is_allowed, BOT_TOKEN, location).map(SecretString::from)
    },
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": BOT_TOKEN })
);

/// A Telegram chat: a number, or a channel's `@name`.
#[derive(Debug, Clone)]
struct ChatId(String);

impl Deserr<Faults> for ChatId {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = match value {
            Value::Integer(number) => number.to_string(),
            Value::NegativeInteger(number) => number.to_string(),
            other => string(other, location)?,
        };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_@-".contains(c);
        matching(text, 1, 64, is_allowed, CHAT, location).map(Self)
    }
}

/// E-mail addresses: at least one.
#[derive(Debug, Clone)]
struct Recipients(Vec<String>);

impl Deserr<Faults> for Recipients {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let count = match &value {
            Value::Sequence(items) => deserr::Sequence::len(items),
            other => return Err(wrong_kind(other.kind(), &[ValueKind::Sequence], location)),
        };
        if count == 0 {
            return Err(Faults::at(location, "value_error.list.min_items", "ensure this value has at least 1 items"));
        }
        if count > MAX_RECIPIENTS {
            let msg = format!("ensure this value has at most {MAX_RECIPIENTS} items");
            return Err(Faults::at(location, "value_error.list.max_items", msg));
        }
        let mut recipients = Vec::new();
        for Email(address) in Vec::<Email>::deserialize_from_value(value, location)? {
            if !recipients.contains(&address) {
                recipients.push(address);
            }
        }
        Ok(Self(recipients))
    }
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct WebhookIn {
    url: ServiceUrl,
    #[deserr(default)]
    secret: Option<SigningSecret>,
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct EmailIn {
    to: Recipients,
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct UrlIn {
    url: ServiceUrl,
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct TelegramIn {
    bot_token: BotToken,
    chat_id: ChatId,
    #[deserr(default)]
    url: Option<ServiceUrl>,
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct NtfyIn {
    url: ServiceUrl,
    #[deserr(default)]
    token: Option<AppToken>,
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct GotifyIn {
    url: ServiceUrl,
    token: AppToken,
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct PushIn {
    endpoint: ServiceUrl,
    keys: PushKeysIn,
}

#[derive(Deserr)]
#[deserr(error = Faults)]
struct PushKeysIn {
    p256dh: SubscriptionKey,
    auth: SubscriptionSecret,
}

text_field!(
    /// The public key of a browser's subscription.
    SubscriptionKey(SecretString),
    |text, location| {
        Subscriber::public_key(&text).ok_or_else(|| not_a_key("a point of P-256 (65 bytes)", location))?;
        Ok(SecretString::from(text))
    },
    json!({ "type": "string", "maxLength": 88, "pattern": BASE64_URL })
);

text_field!(
    /// The secret of a browser's subscription.
    SubscriptionSecret(SecretString),
    |text, location| {
        Subscriber::auth(&text).ok_or_else(|| not_a_key("16 bytes", location))?;
        Ok(SecretString::from(text))
    },
    json!({ "type": "string", "maxLength": 24, "pattern": BASE64_URL })
);

fn not_a_key(what: &str, location: ValuePointerRef<'_>) -> Faults {
    Faults::at(location, "value_error.push_key", format!("must be {what} in URL-safe base64"))
}

/// The kind of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(pub &'static str);

impl Kind {
    /// The kind with this name; `None` for any other word.
    pub fn of(word: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| *kind == word).map(Self)
    }
}

impl Deserr<Faults> for Kind {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        Self::of(&string(value, location)?).ok_or_else(|| not_a_member(&KINDS, location))
    }
}

described!(Kind, json!({ "type": "string", "enum": KINDS, "example": "webhook" }));

/// Settings that can be parsed once the kind of the channel is known.
pub struct RawSettings(serde_json::Value);

impl Deserr<Faults> for RawSettings {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match value {
            Value::Map(_) => Ok(Self(value.into())),
            other => Err(wrong_kind(other.kind(), &[ValueKind::Map], location)),
        }
    }
}

impl RawSettings {
    /// Parses the settings of a channel of this kind at this location. An omitted webhook secret is empty.
    pub fn parse(&self, kind: Kind, location: ValuePointerRef<'_>) -> Result<Settings, Faults> {
        settings(kind, self.0.clone(), location)
    }
}

/// As [`RawSettings::parse`], for any value.
pub fn settings(kind: Kind, json: serde_json::Value, location: ValuePointerRef<'_>) -> Result<Settings, Faults> {
    let value = json.into_value();
    let url = |ServiceUrl(url)| plain(&url);
    Ok(match kind.0 {
        "email" => {
            let EmailIn { to: Recipients(to) } = EmailIn::deserialize_from_value(value, location)?;
            Settings::Email { to }
        }
        "slack" => Settings::Slack { url: url(UrlIn::deserialize_from_value(value, location)?.url) },
        "discord" => Settings::Discord { url: url(UrlIn::deserialize_from_value(value, location)?.url) },
        "teams" => Settings::Teams { url: url(UrlIn::deserialize_from_value(value, location)?.url) },
        "telegram" => {
            let TelegramIn { bot_token, chat_id, url: api } = TelegramIn::deserialize_from_value(value, location)?;
            Settings::Telegram { bot_token: plain(&bot_token.0), chat_id: chat_id.0, url: api.map(url) }
        }
        "ntfy" => {
            let NtfyIn { url: topic, token } = NtfyIn::deserialize_from_value(value, location)?;
            Settings::Ntfy { url: url(topic), token: token.map(|AppToken(token)| plain(&token)) }
        }
        "gotify" => {
            let GotifyIn { url: server, token } = GotifyIn::deserialize_from_value(value, location)?;
            Settings::Gotify { url: url(server), token: plain(&token.0) }
        }
        "push" => {
            let PushIn { endpoint, keys } = PushIn::deserialize_from_value(value, location)?;
            let PushKeysIn { p256dh: SubscriptionKey(p256dh), auth: SubscriptionSecret(auth) } = keys;
            Settings::Push { endpoint: url(endpoint), p256dh: plain(&p256dh), auth: plain(&auth) }
        }
        _ => {
            let WebhookIn { url: receiver, secret } = WebhookIn::deserialize_from_value(value, location)?;
            let secret = secret.map(|SigningSecret(secret)| plain(&secret)).unwrap_or_default();
            Settings::Webhook { url: url(receiver), secret }
        }
    })
}

fn plain(secret: &SecretString) -> String {
    secret.expose_secret().to_owned()
}

/// A [`bounded`] text with only these characters.
fn matching(
    text: String,
    least: usize,
    most: usize,
    is_allowed: impl Fn(char) -> bool,
    pattern: &str,
    location: ValuePointerRef<'_>,
) -> Result<String, Faults> {
    let text = bounded(text, least, most, location)?;
    if text.chars().all(is_allowed) {
        return Ok(text);
    }
    Err(Faults::at(location, "value_error.str.regex", format!("string does not match regex \"{pattern}\"")))
}

described!(RawSettings, {
    let url = json!({ "type": "string", "format": "uri", "minLength": 1, "maxLength": 2_000 });
    let token = json!({ "type": "string", "minLength": 1, "maxLength": 500, "pattern": TOKEN });
    let recipients = json!({ "type": "array", "minItems": 1, "maxItems": MAX_RECIPIENTS,
                             "items": { "type": "string", "format": "email", "maxLength": 254 } });
    let secret = json!({ "type": "string", "minLength": 16, "maxLength": 200, "pattern": TOKEN,
                         "description": "Signs messages (HMAC-SHA256); generated by the service if absent." });
    let bot_token = json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": BOT_TOKEN });
    let chat_id = json!({ "type": "string", "minLength": 1, "maxLength": 64, "pattern": CHAT,
                          "description": "A chat's number, or a channel's @name. The number may be a JSON number." });
    let keys = json!({ "type": "object", "required": ["p256dh", "auth"], "properties": {
        "p256dh": { "type": "string", "maxLength": 88, "pattern": BASE64_URL,
                    "description": "The browser's public key, an uncompressed point of P-256." },
        "auth": { "type": "string", "maxLength": 24, "pattern": BASE64_URL, "description": "16 bytes." },
    } });
    let of = |title: &str, properties: serde_json::Value, required: &[&str]| json!({ "title": title, "type": "object", "properties": properties, "required": required });
    json!({
        "description": "The destination of messages. The fields depend on the type. Never shown again.",
        "type": "object",
        "example": { "url": "https://example.com/alerts" },
        "anyOf": [
            of("webhook", json!({ "url": url, "secret": secret }), &["url"]),
            of("email", json!({ "to": recipients }), &["to"]),
            of("slack, discord, teams", json!({ "url": url }), &["url"]),
            of("telegram", json!({ "bot_token": bot_token, "chat_id": chat_id, "url": url }), &["bot_token", "chat_id"]),
            of("ntfy: the url ends with the topic", json!({ "url": url, "token": token }), &["url"]),
            of("push: a browser's subscription; the endpoint begins with https://",
               json!({ "endpoint": url, "keys": keys }), &["endpoint", "keys"]),
            of("gotify", json!({ "url": url, "token": token }), &["url", "token"]),
        ],
    })
});

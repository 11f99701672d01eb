//! What a channel needs to be reached. Most of it is secret: it is encrypted where it is kept, and never shown.

use serde::{Deserialize, Serialize};

/// The kinds of channels, as they are written.
pub const KINDS: [&str; 8] = ["webhook", "email", "slack", "discord", "telegram", "ntfy", "gotify", "teams"];

/// The settings of a channel. Has no `Debug`: most of it is secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Settings {
    /// Our own JSON, signed.
    Webhook {
        url: String,
        /// The key of the HMAC.
        secret: String,
    },
    /// By the SMTP server of the service.
    Email {
        to: Vec<String>,
    },
    Slack {
        url: String,
    },
    Discord {
        url: String,
    },
    Teams {
        url: String,
    },
    Telegram {
        bot_token: String,
        chat_id: String,
        /// Where the Bot API is; Telegram's own unless told.
        #[serde(default)]
        url: Option<String>,
    },
    Ntfy {
        /// With the topic.
        url: String,
        #[serde(default)]
        token: Option<String>,
    },
    Gotify {
        url: String,
        token: String,
    },
}

impl Settings {
    /// Which kind of channel it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Email { .. } => "email",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Telegram { .. } => "telegram",
            Self::Ntfy { .. } => "ntfy",
            Self::Gotify { .. } => "gotify",
            Self::Teams { .. } => "teams",
        }
    }
}

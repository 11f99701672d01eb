//! The settings with which a channel is reached. Most of them are secret: they are stored encrypted and never shown.

use serde::{Deserialize, Serialize};

/// The kinds of channels, as written in the API.
pub const KINDS: [&str; 9] = ["webhook", "email", "slack", "discord", "telegram", "ntfy", "gotify", "teams", "push"];

/// The settings of a channel. Has no `Debug`: most of it is secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Settings {
    /// Posts our own JSON, signed.
    Webhook {
        url: String,
        /// The key of the HMAC.
        secret: String,
    },
    /// Sends mail through the service's SMTP server.
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
        /// The address of the Bot API. Defaults to Telegram's own.
        #[serde(default)]
        url: Option<String>,
    },
    Ntfy {
        /// The server's address followed by the topic.
        url: String,
        #[serde(default)]
        token: Option<String>,
    },
    Gotify {
        url: String,
        token: String,
    },
    /// A browser's push subscription.
    Push {
        /// The address of this browser at its push service. Anyone who knows it can send there what nobody can read.
        endpoint: String,
        /// The browser's public key, in base64.
        p256dh: String,
        /// The secret that it shares with the service, in base64.
        auth: String,
    },
}

impl Settings {
    /// Returns one of [`KINDS`].
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
            Self::Push { .. } => "push",
        }
    }

    /// Returns the URL that the channel posts to; `None` for e-mail, and for Telegram without a Bot API of its own.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Webhook { url, .. }
            | Self::Slack { url }
            | Self::Discord { url }
            | Self::Teams { url }
            | Self::Ntfy { url, .. }
            | Self::Gotify { url, .. }
            | Self::Push { endpoint: url, .. } => Some(url),
            Self::Telegram { url, .. } => url.as_deref(),
            Self::Email { .. } => None,
        }
    }

    /// Returns everyone who has to get a message, by the names under which the outbox records each delivery.
    pub fn recipients(&self) -> Vec<String> {
        match self {
            Self::Email { to } => to.clone(),
            Self::Webhook { .. }
            | Self::Slack { .. }
            | Self::Discord { .. }
            | Self::Teams { .. }
            | Self::Telegram { .. }
            | Self::Ntfy { .. }
            | Self::Gotify { .. }
            | Self::Push { .. } => vec![self.destination()],
        }
    }

    /// Returns what may be shown of the address: never a path, which is the secret of most channels.
    pub fn destination(&self) -> String {
        match self {
            Self::Email { to } => to.join(", "),
            Self::Telegram { chat_id, .. } => chat_id.clone(),
            _ => self.url().map(host).unwrap_or_default(),
        }
    }
}

/// Returns the host of a URL, with its port unless that is the scheme's default.
fn host(url: &str) -> String {
    let Ok(url) = reqwest::Url::parse(url) else { return String::new() };
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_shows_no_secret() {
        let url = "https://user:pass@hooks.example.com:8443/services/T0/secret?token=secret#secret".to_owned();

        let slack = Settings::Slack { url };
        let telegram =
            Settings::Telegram { bot_token: "1:secret".to_owned(), chat_id: "-100123".to_owned(), url: None };
        let email = Settings::Email { to: vec!["ada@example.com".to_owned(), "bob@example.com".to_owned()] };

        assert_eq!(slack.destination(), "hooks.example.com:8443");
        assert_eq!(telegram.destination(), "-100123");
        assert_eq!(email.destination(), "ada@example.com, bob@example.com");
    }
}

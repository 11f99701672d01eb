//! Renders a message for each kind of channel. Pure: it builds requests and mails and sends nothing.
//!
//! [`text`] writes the text, which is the same for all channels. Each service's file puts it into that service's format,
//! within its limits. Names of servers, disks, containers and processes are untrusted: none may become markup, a mention
//! or a link.

mod discord;
mod email;
mod gotify;
mod limit;
mod ntfy;
mod push;
mod slack;
mod teams;
mod telegram;
#[cfg(test)]
mod tests;
mod text;
mod webhook;

use serde_json::Value;
use signalbox_protocol::Timestamp;

pub use ntfy::topic_of;
pub use push::{Push, check_endpoint};

use super::channel::Settings;
use super::message::Message;
use text::MessageText;

/// A rendered message, ready to send. Has no `Debug`: most of it is secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Outgoing {
    Request(Request),
    Mail(Mail),
    /// Becomes a request by encryption, with other bytes at each attempt.
    Push(Push),
}

/// A POST request, with a JSON body unless its headers name another type.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    /// Headers that only the origin of `url` gets, never the target of a redirect.
    pub secrets: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The statuses that mean that this receiver is gone for good.
    pub gone: &'static [u16],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    pub to: Vec<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Why no request can be built from the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("the URL is not valid")]
    Url,
    #[error("the URL must end with a topic: 1 to 64 letters, digits, - and _")]
    Topic,
    #[error("the address must begin with https://")]
    Insecure,
    #[error("the keys are not those of a browser's subscription")]
    Subscription,
}

/// Renders a message for a channel. `now` is the time of this attempt, which a webhook's signature covers; everything else
/// is the same at each attempt. `public_url` is the address at which people reach the service; without it, the message has
/// no links.
pub fn render(
    settings: &Settings,
    message: &Message,
    public_url: Option<&str>,
    now: Timestamp,
) -> Result<Outgoing, Unfit> {
    let told = MessageText::new(message, public_url);
    let request = match settings {
        Settings::Email { to } => return Ok(Outgoing::Mail(email::mail(to, &told))),
        Settings::Push { endpoint, p256dh, auth } => {
            return push::push(endpoint, p256dh, auth, message, &told).map(Outgoing::Push);
        }
        Settings::Webhook { url, secret } => webhook::request(url, secret, message, &told, now),
        Settings::Slack { url } => Request::to(url, &slack::body(&told)),
        Settings::Discord { url } => Request::to(url, &discord::body(&told)),
        Settings::Teams { url } => Request::to(url, &teams::body(&told)),
        Settings::Telegram { bot_token, chat_id, url } => telegram::request(url.as_deref(), bot_token, chat_id, &told),
        Settings::Ntfy { url, token } => ntfy::request(url, token.as_deref(), &told)?,
        Settings::Gotify { url, token } => gotify::request(url, token, &told),
    };
    Ok(Outgoing::Request(request))
}

impl Request {
    fn to(url: impl Into<String>, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self { url: url.into(), headers: Vec::new(), secrets: Vec::new(), body, gone: &[] }
    }
}

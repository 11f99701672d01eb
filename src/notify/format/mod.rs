//! What a message looks like on each kind of channel. Pure: it makes requests and mails, and sends none.
//!
//! [`told`] says it in words, the same for all; each service's file puts the words into its form, within its limits.
//! Names of servers, disks, containers and processes come from strangers: none may become markup, a mention or a link.

mod discord;
mod email;
mod gotify;
mod limit;
mod ntfy;
mod slack;
mod teams;
mod telegram;
#[cfg(test)]
mod tests;
mod told;
mod webhook;

use serde_json::Value;
use signalbox_protocol::Timestamp;

pub use ntfy::topic_of;

use super::channel::Settings;
use super::message::Message;
use told::Told;

/// What is to be sent. Has no `Debug`: most of it is secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Outgoing {
    Request(Request),
    Mail(Mail),
}

/// A POST of JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    /// For the origin in `url` alone: never told to where that redirects.
    pub secrets: Vec<(&'static str, String)>,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    pub to: Vec<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Why settings make no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("the URL cannot be read")]
    Url,
    #[error("the URL must end with a topic: 1 to 64 letters, digits, - and _")]
    Topic,
}

/// Puts a message into the form of a channel. `now` is the time of this attempt, which a signature covers; everything
/// else is the same at each attempt. Links need the address under which people reach the service.
pub fn render(
    settings: &Settings,
    message: &Message,
    public_url: Option<&str>,
    now: Timestamp,
) -> Result<Outgoing, Unfit> {
    let told = Told::new(message, public_url);
    let request = match settings {
        Settings::Email { to } => return Ok(Outgoing::Mail(email::mail(to, &told))),
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
        Self { url: url.into(), headers: Vec::new(), secrets: Vec::new(), body: body.to_string() }
    }
}

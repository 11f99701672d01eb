//! Gotify. <https://gotify.net/docs/msgextras>

use serde_json::{Value, json};

use super::Request;
use super::limit::{Room, bytes, fit};
use super::text::{MessageText, Tone};

/// Gotify documents no limit; this is a few screens of a phone.
const ROOM: Room = Room { measure: bytes, size: 16_000, lines: 100 };

pub fn request(url: &str, token: &str, told: &MessageText) -> Request {
    let body = json!({
        "title": format!("{} {}", told.tone.emoji(), told.headline),
        "message": fit(told.escaped(str::to_owned), ROOM).join("\n"),
        "priority": priority(told.tone),
        "extras": extras(told),
    });
    let mut request = Request::to(format!("{}/message", url.trim_end_matches('/')), &body);
    request.secrets = vec![("X-Gotify-Key", token.to_owned())];
    request
}

/// Marks the message as plain text, so that clients do not render Markdown.
fn extras(told: &MessageText) -> Value {
    let display = json!({"contentType": "text/plain"});
    match &told.link {
        Some(link) => json!({"client::display": display, "client::notification": {"click": {"url": link}}}),
        None => json!({"client::display": display}),
    }
}

/// Gotify's apps play a sound from priority 4 and show a heads-up notification from 8.
fn priority(tone: Tone) -> u8 {
    match tone {
        Tone::Resolved | Tone::Info => 3,
        Tone::Test | Tone::Warning => 5,
        Tone::Critical => 8,
    }
}

//! Gotify. <https://gotify.net/docs/msgextras>

use serde_json::{Value, json};

use super::Request;
use super::limit::{Room, bytes, fit};
use super::told::{Told, Tone};

/// It names no limit; this much fits a screen of a phone a few times.
const ROOM: Room = Room { measure: bytes, size: 16_000, lines: 100 };

pub fn request(url: &str, token: &str, told: &Told) -> Request {
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

/// Plain text: no Markdown.
fn extras(told: &Told) -> Value {
    let display = json!({"contentType": "text/plain"});
    match &told.link {
        Some(link) => json!({"client::display": display, "client::notification": {"click": {"url": link}}}),
        None => json!({"client::display": display}),
    }
}

/// Its apps make a sound from 4 on, and come to the front from 8 on.
fn priority(tone: Tone) -> u8 {
    match tone {
        Tone::Resolved | Tone::Info => 3,
        Tone::Test | Tone::Warning => 5,
        Tone::Critical => 8,
    }
}

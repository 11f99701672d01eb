//! The JSON that the interface's service worker (`web/public/sw.js`) shows, before it is encrypted for its browser.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::json;
use uuid::Uuid;

use super::Unfit;
use super::limit::{Room, fit};
use super::text::{MessageText, Tone};
use crate::notify::message::{Event, Message};
use crate::notify::push::Subscriber;

/// A notification shows some lines. In JSON they leave room for the title and the ids within one push message.
const ROOM: Room = Room { measure: in_json, size: 2_000, lines: 8 };

/// The ids of this many alerts are named, so that the browser can put away their notifications.
const MAX_ALERTS: usize = 20;

/// A push service keeps the message of a browser that is away for as long as the service itself retries: a day.
const TTL_SECONDS: u32 = 24 * 3_600;

/// A test is for somebody who waits.
const TEST_TTL_SECONDS: u32 = 60;

/// A message to a browser. Has no `Debug`: its endpoint is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Push {
    /// The address at the browser's push service.
    pub endpoint: String,
    pub subscriber: Subscriber,
    /// At most [`MAX_TEXT_BYTES`](crate::notify::push::MAX_TEXT_BYTES) bytes of JSON.
    pub text: String,
    pub ttl_seconds: u32,
    pub urgency: &'static str,
    /// A push service that still keeps a message of this topic replaces it.
    pub topic: Option<String>,
}

pub fn push(endpoint: &str, p256dh: &str, auth: &str, message: &Message, told: &MessageText) -> Result<Push, Unfit> {
    check_endpoint(endpoint)?;
    let subscriber = Subscriber::new(p256dh, auth).ok_or(Unfit::Subscription)?;
    let alerts: Vec<Uuid> = message.items.iter().filter_map(|item| Some(item.alert.as_ref()?.id)).collect();
    let is_test = message.items.iter().any(|item| item.event == Event::Test);
    let (alert_id, event) = match message.items.as_slice() {
        [item] => (alerts.first(), Some(item.event.word())),
        _ => (None, None),
    };
    let path = match alert_id {
        Some(id) => format!("/alerts/{id}"),
        None if is_test => "/account/notifications".to_owned(),
        None => "/alerts".to_owned(),
    };
    let text = json!({
        "id": message.id,
        "alert_id": alert_id,
        "event": event,
        "severity": severity(told.tone),
        "title": format!("{} {}", told.tone.emoji(), told.headline),
        "text": lines(told),
        "path": path,
        "alerts": alerts.get(..MAX_ALERTS).unwrap_or(&alerts),
        "open_alerts": message.open_alerts,
    });
    Ok(Push {
        endpoint: endpoint.to_owned(),
        subscriber,
        text: text.to_string(),
        ttl_seconds: if is_test { TEST_TTL_SECONDS } else { TTL_SECONDS },
        urgency: urgency(told.tone),
        topic: alert_id.map(|id| BASE64_URL_SAFE_NO_PAD.encode(id.as_bytes())),
    })
}

/// Whether a channel may have this endpoint: push services are reached by HTTPS (RFC 8030, 8), without exception.
pub fn check_endpoint(endpoint: &str) -> Result<(), Unfit> {
    let url = Url::parse(endpoint).map_err(|_| Unfit::Url)?;
    if url.scheme() == "https" { Ok(()) } else { Err(Unfit::Insecure) }
}

/// One alert needs no sign before its line: the title has it.
fn lines(told: &MessageText) -> String {
    match told.lines.as_slice() {
        [line] => line.text.clone(),
        _ => fit(told.escaped(str::to_owned), ROOM).join("\n"),
    }
}

fn in_json(text: &str) -> usize {
    json!(text).to_string().len()
}

fn severity(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Test | Tone::Resolved => None,
        Tone::Info => Some("info"),
        Tone::Warning => Some("warning"),
        Tone::Critical => Some("critical"),
    }
}

/// When a device that saves power is woken (RFC 8030, 5.3).
fn urgency(tone: Tone) -> &'static str {
    match tone {
        Tone::Info => "low",
        Tone::Resolved | Tone::Warning => "normal",
        Tone::Test | Tone::Critical => "high",
    }
}

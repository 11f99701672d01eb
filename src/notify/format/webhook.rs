//! Our own webhook format: the complete message as signed JSON.

use aws_lc_rs::hmac;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::Request;
use super::text::MessageText;
use crate::audit::chain::hex;
use crate::notify::message::{Item, Message};

/// Builds the request. Its body is the same at each attempt. The signature also covers the attempt's time, so that a
/// receiver can refuse a recorded request that is replayed.
pub fn request(url: &str, secret: &str, message: &Message, told: &MessageText, now: Timestamp) -> Request {
    let body = json!({
        "id": message.id,
        "channel": message.channel,
        "sent_at": message.at,
        "alerts": message.items.iter().map(item).collect::<Vec<Value>>(),
        "text": text(told),
    });
    let mut request = Request::to(url, &body);
    let timestamp = now.as_seconds().to_string();
    let signature = sign(secret, &timestamp, &request.body);
    request.headers = vec![
        ("Idempotency-Key", message.id.to_string()),
        ("X-Signalbox-Timestamp", timestamp),
        ("X-Signalbox-Signature", format!("sha256={signature}")),
    ];
    request
}

fn item(item: &Item) -> Value {
    let server = item
        .alert
        .as_ref()
        .map(|alert| json!({"id": alert.server_id, "name": item.server_name, "tags": item.server_tags}));
    json!({"event": item.event.word(), "server": server, "alert": item.alert})
}

fn text(told: &MessageText) -> String {
    let lines: Vec<&str> = told.lines.iter().map(|line| line.text.as_str()).collect();
    format!("{}\n{}", told.headline, lines.join("\n"))
}

pub(super) fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(timestamp.as_bytes());
    context.update(b".");
    context.update(body);
    hex(context.sign().as_ref())
}

mod hostile;
mod limits;
mod services;
mod words;

use serde_json::Value;
use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::Alert;
use uuid::Uuid;

use super::text::Tone;
use super::*;
use crate::notify::message::{Event, Item};

const PUBLIC_URL: &str = "https://signalbox.example.com/";
const ALERT: Uuid = Uuid::from_u128(0xa1);
const SERVER: Uuid = Uuid::from_u128(0x51);
const MESSAGE: Uuid = Uuid::from_u128(0x3e);

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn alert(severity: &str, message: &str) -> Alert {
    Alert {
        id: ALERT,
        threshold_id: Uuid::from_u128(0x7),
        owner: None,
        server_id: SERVER,
        metric_type: "cpu".to_owned(),
        series: None,
        unit: None,
        target: None,
        worst_target: None,
        threshold_value: 90.0,
        clear_value: None,
        comparison: "gt".to_owned(),
        duration_seconds: 300,
        value: 97.3,
        peak_value: 99.0,
        status: "active".to_owned(),
        severity: severity.to_owned(),
        message: message.to_owned(),
        silenced: false,
        triggered_at: at("2026-11-21T09:00:00Z"),
        acknowledged_at: None,
        acknowledged_by: None,
        resolved_at: None,
        resolved_by: None,
    }
}

fn item(event: Event, severity: &str, server_name: &str, message: &str) -> Item {
    Item {
        event,
        alert: Some(alert(severity, message)),
        server_name: server_name.to_owned(),
        server_tags: vec!["prod".to_owned()],
    }
}

fn triggered(severity: &str, server_name: &str, message: &str) -> Item {
    item(Event::Triggered, severity, server_name, message)
}

fn resolved(server_name: &str, message: &str, by: &str) -> Item {
    let mut item = item(Event::Resolved, "critical", server_name, message);
    let alert = item.alert.as_mut().unwrap();
    alert.status = "resolved".to_owned();
    alert.resolved_at = Some(at("2026-11-21T09:12:00Z"));
    alert.resolved_by = Some(by.to_owned());
    item
}

fn test_item() -> Item {
    Item { event: Event::Test, alert: None, server_name: String::new(), server_tags: Vec::new() }
}

fn message(items: Vec<Item>) -> Message {
    Message {
        id: MESSAGE,
        at: at("2026-11-21T09:35:00.250Z"),
        channel: "Night shift".to_owned(),
        items,
        open_alerts: None,
    }
}

fn one() -> Message {
    message(vec![triggered("critical", "web-1", "cpu is 97.3 % on web-1, over 90 % for 5 min")])
}

fn told(message: &Message) -> MessageText {
    MessageText::new(message, Some(PUBLIC_URL))
}

#[track_caller]
fn request(settings: &Settings, message: &Message) -> Request {
    match render(settings, message, Some(PUBLIC_URL), at("2026-11-21T09:40:00Z")) {
        Ok(Outgoing::Request(request)) => request,
        Ok(Outgoing::Mail(_) | Outgoing::Push(_)) => panic!("no request"),
        Err(unfit) => panic!("{unfit}"),
    }
}

#[track_caller]
fn body(settings: &Settings, message: &Message) -> Value {
    serde_json::from_slice(&request(settings, message).body).unwrap()
}

#[track_caller]
fn mail(message: &Message) -> Mail {
    let settings = Settings::Email { to: vec!["ops@example.com".to_owned()] };
    match render(&settings, message, Some(PUBLIC_URL), message.at) {
        Ok(Outgoing::Mail(mail)) => mail,
        _ => panic!("no mail"),
    }
}

fn slack() -> Settings {
    Settings::Slack { url: "https://hooks.slack.com/services/T/B/x".to_owned() }
}

fn discord() -> Settings {
    Settings::Discord { url: "https://discord.com/api/webhooks/1/x".to_owned() }
}

fn teams() -> Settings {
    Settings::Teams { url: "https://example.logic.azure.com/workflows/x".to_owned() }
}

fn telegram() -> Settings {
    Settings::Telegram { bot_token: "1:abc".to_owned(), chat_id: "-100123".to_owned(), url: None }
}

fn ntfy() -> Settings {
    Settings::Ntfy { url: "https://ntfy.example.com/alerts".to_owned(), token: Some("tk_secret".to_owned()) }
}

fn gotify() -> Settings {
    Settings::Gotify { url: "https://gotify.example.com/".to_owned(), token: "Asecret".to_owned() }
}

/// The subscription of RFC 8291, appendix A.
fn push() -> Settings {
    Settings::Push {
        endpoint: "https://push.example.com/send/secret".to_owned(),
        p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4".to_owned(),
        auth: "BTBZMqHH6r4Tts7J_aSIgg".to_owned(),
    }
}

fn webhook() -> Settings {
    Settings::Webhook { url: "https://example.com/hook".to_owned(), secret: "key".to_owned() }
}

//! Sending to healthy receivers, and to all others.

mod addresses;
mod answers;
mod push;
mod redirects;
mod tls;

use std::time::Duration;

use signalbox::notify::channel::Settings;
use signalbox::notify::limits::Limits;
use signalbox::notify::message::{Event, Item, Message};
use signalbox::notify::sender::{Receipt, Refusal, Refused, Sender, SenderConfig};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::PATIENCE;

/// A text that no detail may ever contain. Every secret setting has it.
const SECRET: &str = "hush-hush";

/// A sender that may reach `networks`, as far as they are not public.
fn config(networks: &[&str]) -> SenderConfig {
    SenderConfig {
        networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
        ca_file: None,
        smtp: None,
        push_key: None,
        public_url: None,
        limits: Limits::each(PATIENCE),
    }
}

/// A sender that may reach this machine.
fn local() -> Sender {
    Sender::new(config(&["127.0.0.0/8"])).unwrap()
}

fn limited(limits: Limits) -> Sender {
    Sender::new(SenderConfig { limits, ..config(&["127.0.0.0/8"]) }).unwrap()
}

/// A sender that waits long enough for a connection, on a machine under load, but hardly for an answer.
fn impatient() -> Sender {
    let (connect, answer) = (Duration::from_secs(5), Duration::from_millis(150));
    limited(Limits { connect, answer, ..Limits::each(PATIENCE) })
}

fn webhook(url: impl Into<String>) -> Settings {
    Settings::Webhook { url: url.into(), secret: SECRET.to_owned() }
}

fn gotify(url: impl Into<String>) -> Settings {
    Settings::Gotify { url: url.into(), token: SECRET.to_owned() }
}

fn message() -> Message {
    let item = Item { event: Event::Test, alert: None, server_name: String::new(), server_tags: Vec::new() };
    Message {
        id: Uuid::now_v7(),
        at: Timestamp::now(),
        channel: "ops".to_owned(),
        items: vec![item],
        open_alerts: None,
    }
}

async fn send(sender: &Sender, settings: &Settings) -> Result<Receipt, Refused> {
    let message = message();
    let outcome = on_any_thread(sender.send(settings, &message)).await;
    let detail = outcome.as_ref().map_or_else(|refused| &refused.detail, |receipt| &receipt.detail);
    assert!(!detail.contains(SECRET), "{detail}");
    outcome
}

/// Compiles only for futures that any thread may run.
fn on_any_thread<T: Send>(sending: T) -> T {
    sending
}

/// Why a message to `settings` was not accepted.
#[track_caller]
fn refusal(outcome: Result<Receipt, Refused>) -> (Refusal, String) {
    let refused = outcome.expect_err("it was taken");
    (refused.kind, refused.detail)
}

/// The error for a host that is in no public network.
fn private(host: &str) -> String {
    format!("the address of {host} is private or reserved; --notification-networks can allow its network")
}

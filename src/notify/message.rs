//! A message: one or several events of alerts, for any kind of channel.

use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::Alert;
use uuid::Uuid;

/// A message on a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The same at each attempt, so that receivers can recognise a duplicate.
    pub id: Uuid,
    /// When its newest item was queued.
    pub at: Timestamp,
    /// The channel's name.
    pub channel: String,
    /// At least one item, oldest first.
    pub items: Vec<Item>,
    /// How many active alerts the channel's owner sees at this attempt, for the badge of a browser; `None` for other kinds
    /// of channels, and if it could not be read.
    pub open_alerts: Option<u64>,
}

/// Something that happened to an alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub event: Event,
    /// `None` in a test message.
    pub alert: Option<Alert>,
    pub server_name: String,
    pub server_tags: Vec<String>,
}

/// The kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Triggered,
    /// A notification was sent before, and nobody has acknowledged the alert.
    Reminder,
    Resolved,
    Test,
}

impl Event {
    /// Returns the word for it in the database and in webhooks.
    pub fn word(self) -> &'static str {
        match self {
            Self::Triggered => "triggered",
            Self::Reminder => "reminder",
            Self::Resolved => "resolved",
            Self::Test => "test",
        }
    }

    pub fn of(word: &str) -> Option<Self> {
        [Self::Triggered, Self::Reminder, Self::Resolved, Self::Test].into_iter().find(|event| event.word() == word)
    }
}

//! What is told: one or several events of alerts in one message, whatever carries it.

use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::Alert;
use uuid::Uuid;

/// A message on a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The same at each attempt: receivers know a repetition by it.
    pub id: Uuid,
    /// When it was put together.
    pub at: Timestamp,
    /// The channel's name.
    pub channel: String,
    /// At least one, oldest first.
    pub items: Vec<Item>,
}

/// Something that happened to an alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub event: Event,
    /// None in a test.
    pub alert: Option<Alert>,
    pub server_name: String,
    pub server_tags: Vec<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Triggered,
    /// It was told before, and nobody has acknowledged it.
    Reminder,
    Resolved,
    Test,
}

impl Event {
    /// As it is kept and told.
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

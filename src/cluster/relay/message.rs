//! Messages between instances about topics that have subscribers.

use serde::{Deserialize, Serialize};
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use crate::bus::blob::Blob;
use crate::feeds::FeedFrame;

/// An event, and the instance that reports it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RelayMessage {
    pub from: Uuid,
    pub what: RelayEvent,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RelayEvent {
    /// The text as dashboards get it.
    Metrics(String),
    Event(String),
    Notice,
    Nudge,
    /// An agent connected to the instance `of`, or disconnected from it.
    Status {
        server_id: Uuid,
        status: ServerStatus,
        of: Uuid,
    },
    /// The latest sample of a server, in the stored format.
    Sample {
        server_id: Uuid,
        sample: Blob,
    },
}

impl RelayEvent {
    pub fn of(frame: &FeedFrame) -> Self {
        match frame {
            FeedFrame::Metrics(text) => Self::Metrics(text.text().into()),
            FeedFrame::Event(text) => Self::Event(text.text().into()),
            // Other instances learn of rights from the audit log; the topic does not cross.
            FeedFrame::Notice | FeedFrame::Rights => Self::Notice,
        }
    }

    /// Whether the next message of the same kind replaces it.
    pub fn is_metrics(&self) -> bool {
        match self {
            Self::Metrics(_) | Self::Sample { .. } => true,
            Self::Event(_) | Self::Notice | Self::Nudge | Self::Status { .. } => false,
        }
    }

    /// The memory that it occupies in addition to its own size.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Metrics(text) | Self::Event(text) => text.len(),
            Self::Sample { sample, .. } => sample.0.len(),
            Self::Notice | Self::Nudge | Self::Status { .. } => 0,
        }
    }
}

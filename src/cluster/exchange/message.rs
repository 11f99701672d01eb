//! What instances tell each other about topics that somebody watches.

use serde::{Deserialize, Serialize};
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use crate::bus::blob::Blob;
use crate::feeds::Frame;

/// What happened, and where it is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub from: Uuid,
    pub what: What,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// As dashboards get it.
    Metrics(String),
    Event(String),
    Notice,
    Nudge,
    /// An agent came to the instance `of`, or went from it.
    Status {
        server_id: Uuid,
        status: ServerStatus,
        of: Uuid,
    },
    /// The latest of a server, as it is kept.
    Sample {
        server_id: Uuid,
        sample: Blob,
    },
}

impl What {
    pub fn of(frame: &Frame) -> Self {
        match frame {
            Frame::Metrics(text) => Self::Metrics(text.text().into()),
            Frame::Event(text) => Self::Event(text.text().into()),
            Frame::Notice => Self::Notice,
        }
    }

    /// Whether the next one of its like says it anew.
    pub fn is_metrics(&self) -> bool {
        match self {
            Self::Metrics(_) | Self::Sample { .. } => true,
            Self::Event(_) | Self::Notice | Self::Nudge | Self::Status { .. } => false,
        }
    }

    /// The memory that it takes beside itself.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Metrics(text) | Self::Event(text) => text.len(),
            Self::Sample { sample, .. } => sample.0.len(),
            Self::Notice | Self::Nudge | Self::Status { .. } => 0,
        }
    }
}

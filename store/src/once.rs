//! What starts a batch at most once, however many instances and requests try.

use sea_orm::ConnectionTrait;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::StoreError;
use super::approvals::approve;
use super::schedules::{Occurrence, begin_run};

/// The reason to start a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once {
    /// A command got all its signatures.
    Approval {
        /// The approval.
        id: Uuid,
        /// When that was noticed.
        at: Timestamp,
    },
    /// A schedule is due.
    Occurrence(Occurrence),
}

/// Whether nobody has started this before. Until the transaction ends, nobody else gets an answer.
pub(super) async fn is_first(
    connection: &impl ConnectionTrait,
    once: Once,
    batch_id: Uuid,
) -> Result<bool, StoreError> {
    match once {
        Once::Approval { id, at } => approve(connection, id, batch_id, at).await,
        Once::Occurrence(occurrence) => begin_run(connection, occurrence, batch_id).await,
    }
}

//! Which instance sends which message. An instance claims a message before it sends it, so that after a crash the same message
//! is repeated, and two instances never send on one channel at the same time.

use entity::{Millis, notification, notification_channel};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::due::next_message;
use super::ended_channels::disable;
use super::outbox::{About, FAILED, PENDING, SENT, TEST, row};
use super::{Channel, Notification, Progress, Store, StoreError};
use crate::audit::{Actor, Entry, Outcome, action};

/// The values of `hold`.
pub(super) const SENDING: &str = "sending";
pub(super) const UNREACHABLE: &str = "unreachable";
/// The message has been in transit for so long that the channel's other messages no longer wait for it.
pub(super) const OVERTAKEN: &str = "overtaken";
/// The message was too large for its receiver. It is sent in parts, each a message of its own.
pub(super) const SPLIT: &str = "split";
/// Some recipients have the message for good, and it is tried again for the others. Not even the ends of its alerts wait for
/// these: a mailbox that is full for a day would keep the ends from everybody.
pub(super) const PARTLY: &str = "partly";

/// A message that this instance is to send now.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The channel.
    pub channel: Channel,
    /// The message's id, the same in every attempt.
    pub message_id: Uuid,
    /// The notifications that it carries, oldest first; at least one. They have the state during the attempt.
    pub rows: Vec<Notification>,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// No recipient is left.
    Sent {
        /// What people should know about recipients that did not confirm it.
        error: Option<String>,
    },
    /// The message is to be tried again.
    Failed {
        /// What happened.
        error: String,
        /// When to try again.
        again_at: Timestamp,
        /// Whether the channel's other messages wait for this one.
        holds_others: bool,
    },
    /// The message will not be tried again.
    GivenUp {
        /// What happened.
        error: String,
    },
    /// The receiver is gone for good: the message is given up, and its channel disabled.
    Ended {
        /// What happened.
        error: String,
    },
    /// The message is too large for its receiver: its notifications are sent at once in smaller ones, before the channel's
    /// others. It does not count as an attempt.
    Split,
}

impl Claim {
    /// How often the message was attempted, including this time. It fences everything that is written about the attempt. All
    /// rows of a message are attempted together.
    pub fn attempts(&self) -> i32 {
        self.rows.iter().map(|row| row.attempts).max().unwrap_or_default()
    }

    /// Which recipients have the message.
    pub fn progress(&self) -> Progress {
        self.rows.first().map(|row| Progress::read(row.recipients.as_deref())).unwrap_or_default()
    }
}

impl Store {
    /// Claims the next message of a channel: the one that blocks the others when it is due, otherwise new notifications,
    /// otherwise what was refused before; never the end of an alert before something earlier about it. A message that was not
    /// sent before has at most `most` notifications. Until `until` no other instance sends it. None when nothing is due.
    pub async fn claim(
        &self,
        channel_id: Uuid,
        now: Timestamp,
        until: Timestamp,
        most: u64,
    ) -> Result<Option<Claim>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let channel = notification_channel::Entity::find_by_id(channel_id)
                .filter(notification_channel::Column::IsEnabled.eq(true))
                .lock_exclusive()
                .one(&transaction)
                .await?;
            let Some(channel) = channel else { return Ok(None) };
            let rows = next_message(&transaction, channel_id, now, most).await?;
            let Some(first) = rows.first() else { return Ok(None) };
            // A receiver may remember the id of the message that was split, and what it answered.
            let is_part = first.hold.as_deref() == Some(SPLIT);
            let message_id = if is_part { Uuid::now_v7() } else { first.message_id };
            let claimed = notification::Entity::update_many()
                .col_expr(notification::Column::MessageId, Expr::value(message_id))
                .col_expr(notification::Column::Attempts, Expr::col(notification::Column::Attempts).add(1))
                .col_expr(notification::Column::AttemptedAt, Millis::from(now).into())
                .col_expr(notification::Column::NextAttemptAt, Millis::from(until).into())
                .col_expr(notification::Column::Hold, Expr::value(SENDING))
                .filter(notification::Column::Id.is_in(rows.iter().map(|row| row.id)));
            claimed.exec(&transaction).await?;
            transaction.commit().await?;
            let rows = rows.into_iter().map(|row| Notification {
                message_id,
                attempts: row.attempts.saturating_add(1),
                attempted_at: Some(now.into()),
                next_attempt_at: Some(until.into()),
                hold: Some(SENDING.to_owned()),
                ..row
            });
            Ok(Some(Claim { channel, message_id, rows: rows.collect() }))
        })
        .await
    }

    /// Extends a claim until `until`. Returns whether the claim still held.
    pub async fn renew_claim(&self, claim: &Claim, until: Timestamp) -> Result<bool, StoreError> {
        let renewed = still(claim).col_expr(notification::Column::NextAttemptAt, Millis::from(until).into());
        Ok(renewed.exec(&self.write).await?.rows_affected > 0)
    }

    /// Allows the channel's next messages to be sent while a claimed one is in transit.
    pub async fn let_overtake(&self, claim: &Claim) -> Result<(), StoreError> {
        let overtaken = still(claim).col_expr(notification::Column::Hold, Expr::value(OVERTAKEN));
        overtaken.exec(&self.write).await?;
        Ok(())
    }

    /// Records that a claimed message is about to be handed over, and the state of its recipients should there never be an
    /// answer. Returns false where another instance has claimed it since; then it must not be handed over.
    pub async fn begin_hand_over(&self, claim: &Claim, progress: &Progress) -> Result<bool, StoreError> {
        let begun = still(claim).col_expr(notification::Column::Recipients, Expr::value(progress.written()));
        Ok(begun.exec(&self.write).await?.rows_affected > 0)
    }

    /// Records the result of an attempt.
    pub async fn conclude(
        &self,
        claim: &Claim,
        attempt: &Attempt,
        progress: &Progress,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if let Attempt::Ended { error } = attempt {
            return self.end_channel(claim, error, progress, now).await;
        }
        let update = written(attempt, progress, now)
            .filter(notification::Column::MessageId.eq(claim.message_id))
            .filter(notification::Column::ChannelId.eq(claim.channel.id))
            .filter(notification::Column::Status.ne(SENT));
        let update = match attempt {
            // The instance that has claimed it since finds that it has arrived.
            Attempt::Sent { .. } => update,
            Attempt::Failed { .. } | Attempt::GivenUp { .. } | Attempt::Ended { .. } => {
                update.filter(notification::Column::Attempts.eq(claim.attempts()))
            }
            // The new id fences off an instance that claimed the message before: the number of attempts no longer does.
            Attempt::Split => update
                .filter(notification::Column::Attempts.eq(claim.attempts()))
                .col_expr(notification::Column::Attempts, Expr::col(notification::Column::Attempts).sub(1))
                .col_expr(notification::Column::MessageId, Expr::value(Uuid::now_v7())),
        };
        update.exec(&self.write).await?;
        Ok(())
    }

    /// Makes messages that were in transit when the service stopped due at once, and fails tests whose sender is gone. Only for
    /// a service with a single instance.
    pub async fn release_claims(&self, now: Timestamp) -> Result<(), StoreError> {
        let pending = || notification::Entity::update_many().filter(notification::Column::Status.eq(PENDING));
        let released = pending()
            .col_expr(notification::Column::NextAttemptAt, Millis::from(now).into())
            .filter(notification::Column::Hold.is_in([SENDING, OVERTAKEN]));
        released.exec(&self.write).await?;
        let interrupted = Attempt::GivenUp { error: "the service stopped during the test".to_owned() };
        let tests = finished(&interrupted, now)
            .filter(notification::Column::Status.eq(PENDING))
            .filter(notification::Column::Event.eq(TEST));
        tests.exec(&self.write).await?;
        Ok(())
    }

    /// Records that a user tests a channel. The caller sends the message, once.
    pub async fn begin_test(&self, channel: Channel, now: Timestamp, actor: Actor) -> Result<Claim, StoreError> {
        let about = About { alert_id: None, event: TEST, subject: "a test", content: None };
        let row = row(&channel, about, now);
        let row = Notification { attempts: 1, attempted_at: Some(now.into()), next_attempt_at: None, ..row };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let new = row.clone().into_active_model().reset_all();
            notification::Entity::insert(new).exec_without_returning(&transaction).await?;
            record_in(&transaction, test_entry(&channel, actor.clone(), Outcome::Started)).await?;
            transaction.commit().await?;
            Ok(Claim { message_id: row.message_id, channel: channel.clone(), rows: vec![row.clone()] })
        })
        .await
    }

    /// Records the result of a test: `outcome` for the audit log, `attempt` for the delivery log.
    pub async fn end_test(
        &self,
        claim: &Claim,
        attempt: &Attempt,
        progress: &Progress,
        outcome: Outcome,
        actor: Actor,
    ) -> Result<(), StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let test = written(attempt, progress, Timestamp::now())
                .filter(notification::Column::MessageId.eq(claim.message_id));
            test.exec(&transaction).await?;
            if let Attempt::Ended { error } = attempt {
                disable(&transaction, claim, error, Timestamp::now()).await?;
            }
            record_in(&transaction, test_entry(&claim.channel, actor.clone(), outcome.clone())).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }
}

/// The rows of a claimed message, while no other instance has claimed them.
fn still(claim: &Claim) -> sea_orm::UpdateMany<notification::Entity> {
    use notification::Column;
    notification::Entity::update_many()
        .filter(Column::MessageId.eq(claim.message_id))
        .filter(Column::ChannelId.eq(claim.channel.id))
        .filter(Column::Status.eq(PENDING))
        .filter(Column::Attempts.eq(claim.attempts()))
}

/// The update of a message's rows after an attempt, with the state of its recipients.
pub(super) fn written(
    attempt: &Attempt,
    progress: &Progress,
    now: Timestamp,
) -> sea_orm::UpdateMany<notification::Entity> {
    concluded(attempt, progress, now).col_expr(notification::Column::Recipients, Expr::value(progress.written()))
}

/// The same for rows that were not handed over: what is known of their recipients stays.
pub(super) fn finished(attempt: &Attempt, now: Timestamp) -> sea_orm::UpdateMany<notification::Entity> {
    concluded(attempt, &Progress::default(), now)
}

fn concluded(attempt: &Attempt, progress: &Progress, now: Timestamp) -> sea_orm::UpdateMany<notification::Entity> {
    use notification::Column;
    let (status, error, again_at) = match attempt {
        Attempt::Sent { error } => (SENT, error.as_ref(), None),
        Attempt::Failed { error, again_at, .. } => (PENDING, Some(error), Some(again_at.as_millis())),
        Attempt::GivenUp { error } | Attempt::Ended { error } => (FAILED, Some(error), None),
        Attempt::Split => (PENDING, None, Some(now.as_millis())),
    };
    let finished_at = (status != PENDING).then_some(now.as_millis());
    notification::Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::Error, Expr::value(error.cloned()))
        .col_expr(Column::NextAttemptAt, Expr::value(again_at))
        .col_expr(Column::Hold, Expr::value(hold(attempt, progress)))
        .col_expr(Column::FinishedAt, Expr::value(finished_at))
}

/// The value of `hold` after an attempt.
fn hold(attempt: &Attempt, progress: &Progress) -> Option<&'static str> {
    match attempt {
        Attempt::Failed { holds_others: true, .. } => Some(UNREACHABLE),
        Attempt::Failed { holds_others: false, .. } => progress.is_final_for_some().then_some(PARTLY),
        Attempt::Split => Some(SPLIT),
        Attempt::Sent { .. } | Attempt::GivenUp { .. } | Attempt::Ended { .. } => None,
    }
}

fn test_entry(channel: &Channel, actor: Actor, outcome: Outcome) -> Entry {
    Entry::new(action::CHANNEL_TEST, channel.owner_id, actor)
        .target(channel.id)
        .outcome(outcome)
        .detail(json!({ "name": channel.name, "destination": channel.destination }))
}

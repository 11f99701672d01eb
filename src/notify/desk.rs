//! One message, from its claim to what came of it.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::deliver::Deliver;
use super::message::{Event, Item, Message};
use super::pace::{Pace, Tried, after};
use super::seal::Sealer;
use super::sender::{Refusal, Refused};
use crate::auth::secret::random;
use crate::store::{Attempt, Claim, Store, StoreError, Told};

/// Items of one message. What is rendered of it is bounded anyway; the rest waits for the next.
const MOST_ITEMS: u64 = 500;

/// Between the end of an attempt and the moment when somebody else may try: what came of it has to be written.
const MARGIN: Duration = Duration::from_secs(5);

/// How long to leave a database alone that has just failed.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What it takes to send.
#[derive(Clone)]
pub(super) struct Desk {
    pub store: Store,
    pub sealer: Sealer,
    pub deliver: Arc<dyn Deliver>,
    pub pace: Pace,
}

impl Desk {
    /// Sends what is due on a channel. Gives whether there was anything. Comes back when it is written what came of it:
    /// a database that goes away meanwhile is waited for, or the message would be sent again.
    pub async fn send_due(&self, channel_id: Uuid) -> Result<bool, StoreError> {
        let now = Timestamp::now();
        let until = after(now, self.pace.attempt + MARGIN);
        let Some(claim) = self.store.claim(channel_id, now, until, MOST_ITEMS).await? else { return Ok(false) };
        let outcome = self.attempt(&claim).await;
        let attempt = self.judge(&claim, outcome, Timestamp::now());
        while let Err(error) = self.store.conclude(&claim, &attempt, Timestamp::now()).await {
            tracing::error!(channel.id = %channel_id, %error, "what came of a message could not be written, will try again");
            tokio::time::sleep(RETRY_AFTER).await;
        }
        Ok(true)
    }

    /// Sends a message once.
    pub async fn attempt(&self, claim: &Claim) -> Result<(), Refused> {
        let misconfigured = |error: super::seal::SealError| Refused::new(Refusal::Misconfigured, error.to_string());
        let settings = self.sealer.open(claim.channel.id, &claim.channel.settings).map_err(misconfigured)?;
        let message = message(claim);
        let sent = tokio::time::timeout(self.pace.attempt, self.deliver.send(&settings, &message)).await;
        let outcome = sent.unwrap_or_else(|_| Err(Refused::new(Refusal::Unreachable, "gave no answer in time")));
        let counter =
            if outcome.is_ok() { "signalbox_notifications_sent_total" } else { "signalbox_notifications_failed_total" };
        metrics::counter!(counter, "kind" => settings.kind()).increment(1);
        outcome
    }

    /// What an outcome means for the message.
    fn judge(&self, claim: &Claim, outcome: Result<(), Refused>, now: Timestamp) -> Attempt {
        let Err(refused) = outcome else { return Attempt::Sent };
        let attempts = claim.rows.iter().map(|row| row.attempts).max().unwrap_or_default();
        let tried = Tried { attempts: u32::try_from(attempts).unwrap_or_default(), created_at: newest(claim), now };
        // Without random numbers the longest wait is as good as any.
        let random = random::<4>().map_or(u32::MAX, u32::from_be_bytes);
        let Some(again_at) = self.pace.again(&tried, refused.retry_after, random) else {
            tracing::warn!(channel.id = %claim.channel.id, attempts, "a message was given up: {}", refused.detail);
            return Attempt::GivenUp { error: refused.detail };
        };
        tracing::debug!(channel.id = %claim.channel.id, attempts, "a message could not be delivered: {}", refused.detail);
        Attempt::Failed { error: refused.detail, again_at, holds_others: refused.kind.holds_others() }
    }
}

/// When the newest of a message was queued: so that each of it is tried for long enough.
fn newest(claim: &Claim) -> Timestamp {
    claim.rows.iter().map(|row| Timestamp::from(row.created_at)).max().unwrap_or_default()
}

/// The message that rows make. Depends on nothing else, so that it is the same at each attempt.
fn message(claim: &Claim) -> Message {
    let items = claim.rows.iter().map(|row| {
        // Only whoever changed the table behind our back could have written another word.
        let event = Event::of(&row.event).unwrap_or(Event::Triggered);
        let (alert, server_name, server_tags) = match Told::of(row) {
            Some(Told { alert, server_name, server_tags }) => (Some(alert), server_name, server_tags),
            None => (None, String::new(), Vec::new()),
        };
        Item { event, alert, server_name, server_tags }
    });
    let channel = claim.channel.name.clone();
    Message { id: claim.message_id, at: newest(claim), channel, items: items.collect() }
}

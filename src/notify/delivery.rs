//! Sends one message, from its claim to the record of its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use signalbox_protocol::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::channel::Settings;
use super::deliver::Deliver;
use super::hand_over::{HandOver, Noting};
use super::message::{Event, Item, Message};
use super::pace::{Pace, Tried, after};
use super::seal::Sealer;
use super::sender::{Receipt, Refusal, Refused};
use super::sizes::Sizes;
use crate::auth::access::Access;
use crate::clock::Clock;
use crate::random;
use crate::store::{Attempt, Claim, NotificationContent, Progress, Store, StoreError, Verdict};

/// How often a claim is renewed within its lease, so that one renewal may fail.
const RENEWALS: u32 = 3;

/// The pause after a database error.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What the delivery log notes where the right to see the server ended before a message was sent.
const NOT_SHARED: &str = "the server is not shared with this account any more";

/// How long the delivery log is kept, in milliseconds. What was sent last about an open alert is kept longer.
const KEPT_MS: i64 = 30 * 24 * 3_600 * 1_000;

/// What sending needs.
#[derive(Clone)]
pub(super) struct DeliveryContext {
    pub store: Store,
    pub access: Access,
    pub sealer: Sealer,
    pub deliver: Arc<dyn Deliver>,
    pub pace: Pace,
    pub clock: Clock,
    pub sizes: Arc<Sizes>,
}

/// Whether a message was due, and how much it carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    Nothing,
    All,
    /// As much as the channel's messages may carry: more may wait.
    Full,
}

impl DeliveryContext {
    /// Gives up messages that were not delivered in time, and removes old entries of the delivery log.
    pub async fn tidy(&self) {
        let (now, certain) = (self.clock.now(), self.clock.certain());
        let expired = certain.plus_millis(-i64::try_from(self.pace.expiry.as_millis()).unwrap_or(i64::MAX));
        let removed = async {
            self.store.give_up_notifications(expired, now).await?;
            while self.store.forget_notifications(certain.plus_millis(-KEPT_MS)).await? > 0 {}
            Ok::<_, StoreError>(())
        };
        if let Err(error) = removed.await {
            tracing::warn!(%error, "old notifications could not be removed");
        }
    }

    /// Sends the message that is due on a channel. Returns what it carried, after its outcome was recorded: until the
    /// database is available it retries, because the message would be sent again otherwise. It notifies `overtaken` when
    /// the message has taken so long that the next one no longer waits.
    pub async fn send_due(&self, channel_id: Uuid, overtaken: oneshot::Sender<()>) -> Result<Carried, StoreError> {
        let now = self.clock.now();
        let until = after(now, self.pace.lease);
        let most = self.sizes.max_items(channel_id, Instant::now());
        let claimed = self.store.claim(channel_id, now, until, u64::try_from(most).unwrap_or(u64::MAX)).await?;
        let Some(claim) = claimed else { return Ok(Carried::Nothing) };
        if self.withdrew(&claim).await {
            return Ok(Carried::Full);
        }
        let outcome = tokio::select! {
            outcome = self.attempt(&claim, None) => outcome,
            never = self.keep(&claim, overtaken) => match never {},
        };
        self.learn(&claim, &outcome);
        let (attempt, progress) = self.judge(&claim, outcome, self.clock.now());
        while let Err(error) = self.store.conclude(&claim, &attempt, &progress, self.clock.now()).await {
            tracing::error!(channel.id = %channel_id, %error, "the outcome of a message could not be written, will try again");
            tokio::time::sleep(RETRY_AFTER).await;
        }
        Ok(if claim.rows.len() < most { Carried::All } else { Carried::Full })
    }

    /// Takes alerts out of a message whose servers the channel's owner may not see any more: a right may end while a message waits
    /// or is retried. Returns whether it took some; what is left is sent at once. Until the database is available it retries,
    /// because the message must not be sent before.
    async fn withdrew(&self, claim: &Claim) -> bool {
        loop {
            let withdrawn = async {
                if self.lost(claim).await?.is_empty() {
                    return Ok(false);
                }
                // What is given up stays given up, so the rights are read again first.
                let contents = claim.rows.iter().filter_map(NotificationContent::of);
                self.access.read_anew(contents.map(|content| content.alert.server_id)).await?;
                let lost = self.lost(claim).await?;
                if !lost.is_empty() {
                    self.store.withdraw(claim, &lost, NOT_SHARED, self.clock.now()).await?;
                }
                Ok::<_, StoreError>(!lost.is_empty())
            };
            match withdrawn.await {
                Ok(has_lost) => return has_lost,
                Err(error) => {
                    tracing::warn!(channel.id = %claim.channel.id, %error, "cannot look up who may see an alert, will try again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// The notifications of a message about servers that the channel's owner may not see. A disabled account sees none of others.
    async fn lost(&self, claim: &Claim) -> Result<Vec<Uuid>, StoreError> {
        let owner_id = claim.channel.owner_id;
        let (mut lost, mut shared) = (Vec::new(), Vec::new());
        for row in &claim.rows {
            let Some(content) = NotificationContent::of(row) else { continue };
            let viewers = self.access.viewers_of(content.alert.server_id).await?;
            // The first is the owner.
            match viewers.iter().position(|id| *id == owner_id) {
                Some(0) => {}
                Some(_) => shared.push(row.id),
                None => lost.push(row.id),
            }
        }
        if !shared.is_empty() && !self.store.is_active_account(owner_id).await? {
            lost.append(&mut shared);
        }
        Ok(lost)
    }

    /// Remembers how many items the receiver accepts in one message.
    fn learn(&self, claim: &Claim, outcome: &Result<Receipt, Refused>) {
        let (channel_id, items) = (claim.channel.id, claim.rows.len());
        match outcome {
            Ok(receipt) if receipt.progress.verdict() == Some(Verdict::Delivered) => {
                self.sizes.accepted(channel_id, items);
            }
            Err(refused) if refused.splits(items) => self.sizes.refused(channel_id, items, Instant::now()),
            Ok(_) | Err(_) => {}
        }
    }

    /// Renews a claim for as long as this is polled, and lets the next message overtake it after the configured time.
    async fn keep(&self, claim: &Claim, overtaken: oneshot::Sender<()>) -> std::convert::Infallible {
        let overtake = async {
            tokio::time::sleep(self.pace.overtaking).await;
            match self.store.let_overtake(claim).await {
                // The dispatcher may have ended.
                Ok(()) => _ = overtaken.send(()),
                Err(error) => {
                    tracing::warn!(channel.id = %claim.channel.id, %error, "a slow message holds up the next ones")
                }
            }
        };
        let renew = async {
            loop {
                tokio::time::sleep(self.pace.lease / RENEWALS).await;
                let until = after(self.clock.now(), self.pace.lease);
                if let Err(error) = self.store.renew_claim(claim, until).await {
                    tracing::warn!(channel.id = %claim.channel.id, %error, "a claim could not be renewed, will try again");
                }
            }
        };
        futures_util::future::join(overtake, renew).await.1
    }

    /// Sends a message once, within the limits of its stages, and within `limit` if that is shorter.
    pub async fn attempt(&self, claim: &Claim, limit: Option<Duration>) -> Result<Receipt, Refused> {
        let before = claim.progress();
        let settings = self
            .sealer
            .open(claim.channel.id, &claim.channel.settings)
            .map_err(|error| Refused::new(Refusal::Misconfigured, error.to_string()).with(before.clone()))?;
        let open_alerts = self.open_alerts(claim, &settings).await;
        let message = Message { open_alerts, ..message(claim) };
        let noted = Noted { store: &self.store, claim, last: Mutex::default() };
        let whole = self.pace.limits.whole(&settings);
        let limit = limit.map_or(whole, |limit| limit.min(whole));
        let sent = tokio::time::timeout(limit, self.deliver.send(&settings, &message, &before, &noted)).await;
        let outcome = sent.unwrap_or_else(|_| noted.cut_off(&before));
        // Its items are counted with the messages that carry them next.
        if outcome.as_ref().is_err_and(|refused| refused.splits(claim.rows.len())) {
            return outcome;
        }
        let verdict = match &outcome {
            Ok(receipt) => receipt.progress.verdict(),
            Err(_) => Some(Verdict::Not),
        };
        let counter = match verdict {
            Some(Verdict::Delivered | Verdict::Partly) | None => "signalbox_notifications_sent_total",
            Some(Verdict::Perhaps | Verdict::Not) => "signalbox_notifications_failed_total",
        };
        metrics::counter!(counter, "kind" => settings.kind()).increment(1);
        outcome
    }

    /// Returns how many active alerts the channel's owner sees, where the receiver shows a badge.
    async fn open_alerts(&self, claim: &Claim, settings: &Settings) -> Option<u64> {
        if !matches!(settings, Settings::Push { .. }) {
            return None;
        }
        match self.store.count_active_alerts(&self.access.visible_to(claim.channel.owner_id)).await {
            Ok(count) => Some(count),
            Err(error) => {
                tracing::warn!(channel.id = %claim.channel.id, %error, "alerts could not be counted, a message has no badge");
                None
            }
        }
    }

    /// Returns what to record for an outcome, and how the recipients stand.
    fn judge(&self, claim: &Claim, outcome: Result<Receipt, Refused>, now: Timestamp) -> (Attempt, Progress) {
        let refused = match outcome {
            Ok(Receipt { detail, progress }) => return (Attempt::Sent { error: doubt(detail, &progress) }, progress),
            Err(refused) => refused,
        };
        let items = claim.rows.len();
        if refused.splits(items) {
            tracing::debug!(channel.id = %claim.channel.id, items, "a message is sent in parts: {}", refused.detail);
            return (Attempt::Split, refused.progress);
        }
        if refused.kind == Refusal::Gone {
            tracing::info!(channel.id = %claim.channel.id, "a channel was disabled: {}", refused.detail);
            return (Attempt::Ended { error: gone(&refused.detail) }, refused.progress);
        }
        let attempts = claim.attempts();
        // The message's age must not come from a clock that may have jumped: that alone must not expire it.
        let age_ms = self.clock.certain().millis_since(newest(claim)).max(0);
        let created_at = now.plus_millis(-age_ms);
        let tried = Tried { attempts: u32::try_from(attempts).unwrap_or_default(), created_at, now };
        // Without random numbers, wait for the longest time.
        let random = random::bytes::<4>().map_or(u32::MAX, u32::from_be_bytes);
        let holds_others = refused.holds_others(attempts);
        let Refused { detail, retry_after, progress, .. } = refused;
        let attempt = match self.pace.again(&tried, retry_after, random) {
            Some(again_at) => {
                tracing::debug!(channel.id = %claim.channel.id, attempts, "a message could not be delivered: {detail}");
                Attempt::Failed { error: detail, again_at, holds_others }
            }
            None => {
                tracing::warn!(channel.id = %claim.channel.id, attempts, "a message was given up: {detail}");
                // Some recipients have it: they know of the alert, and have to get its end.
                if progress.has_begun() {
                    Attempt::Sent { error: Some(detail) }
                } else {
                    Attempt::GivenUp { error: detail }
                }
            }
        };
        (attempt, progress)
    }
}

/// Returns what the delivery log notes about a finished message; `None` if every recipient accepted it.
pub(super) fn doubt(detail: String, progress: &Progress) -> Option<String> {
    match progress.verdict() {
        None | Some(Verdict::Delivered) => None,
        Some(Verdict::Partly | Verdict::Perhaps | Verdict::Not) => Some(detail),
    }
}

/// Returns what the delivery log notes where the receiver is gone.
pub(super) fn gone(detail: &str) -> String {
    format!("{detail}: the browser has ended its subscription, the channel was disabled")
}

/// Records in the outbox that a message is about to be handed over.
struct Noted<'a> {
    store: &'a Store,
    claim: &'a Claim,
    /// How the recipients stand if no answer ever arrives.
    last: Mutex<Option<Progress>>,
}

impl Noted<'_> {
    /// Returns the outcome of a delivery that did not end in time.
    fn cut_off(&self, before: &Progress) -> Result<Receipt, Refused> {
        let noted = self.last.lock().take();
        let refused = |kind| Refused::new(kind, "did not answer in time");
        Err(match noted {
            Some(progress) => refused(Refusal::Perhaps).with(progress),
            None => refused(Refusal::Unreachable).with(before.clone()),
        })
    }
}

impl HandOver for Noted<'_> {
    fn begins<'a>(&'a self, progress: &'a Progress) -> Noting<'a> {
        Box::pin(async move {
            match self.store.begin_hand_over(self.claim, progress).await {
                Ok(is_ours) => {
                    if is_ours {
                        *self.last.lock() = Some(progress.clone());
                    }
                    is_ours
                }
                Err(error) => {
                    tracing::error!(channel.id = %self.claim.channel.id, %error, "the outbox could not be written, a message waits");
                    false
                }
            }
        })
    }
}

/// Returns when the newest item of a message was queued, so that every item is tried for long enough.
fn newest(claim: &Claim) -> Timestamp {
    claim.rows.iter().map(|row| Timestamp::from(row.created_at)).max().unwrap_or_default()
}

/// Builds the message from its rows and from nothing else, so that it is the same at each attempt.
fn message(claim: &Claim) -> Message {
    let items = claim.rows.iter().map(|row| {
        // Another word can only be there if somebody edited the table.
        let event = Event::of(&row.event).unwrap_or(Event::Triggered);
        let (alert, server_name, server_tags) = match NotificationContent::of(row) {
            Some(NotificationContent { alert, server_name, server_tags }) => (Some(alert), server_name, server_tags),
            None => (None, String::new(), Vec::new()),
        };
        Item { event, alert, server_name, server_tags }
    });
    let channel = claim.channel.name.clone();
    Message { id: claim.message_id, at: newest(claim), channel, items: items.collect(), open_alerts: None }
}

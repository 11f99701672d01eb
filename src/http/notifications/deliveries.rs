//! `/notifications/deliveries`.

use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::Timestamp;

use crate::http::error::ApiError;
use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{described, string};
use crate::http::extract::param::{Id as IdParam, MAX_OFFSET, Whole, page};
use crate::http::extract::{Checked, SignedIn};
use crate::http::field_out::{Id, TimeOut};
use crate::http::reply::Listed;
use crate::store::{Delivery, DeliveryFilter, Notification, Progress, Standing, Verdict};

const STATUSES: [&str; 3] = ["pending", "sent", "failed"];

/// The state of a notification.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryStatusParam(&'static str);

impl Deserr<Faults> for DeliveryStatusParam {
    fn deserialize_from_value<V: deserr::IntoValue>(
        value: deserr::Value<V>,
        location: deserr::ValuePointerRef<'_>,
    ) -> Result<Self, Faults> {
        let text = string(value, location)?;
        let status = STATUSES.into_iter().find(|status| *status == text);
        status.map(Self).ok_or_else(|| not_a_member(&STATUSES, location))
    }
}

described!(DeliveryStatusParam, json!({ "type": "string", "enum": STATUSES }));

/// `pending` until it is delivered, or has been retried for a day. `sent` also if only some recipients accepted it, or if
/// there was no reply: `outcome` distinguishes these.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct DeliveryStatusOut(String);

described!(DeliveryStatusOut, json!({ "type": "string", "enum": STATUSES, "example": "sent" }));

/// The result once attempts have ended: all recipients accepted it, some did, it was sent twice without a reply, or no
/// recipient has it.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct DeliveryOutcomeOut(&'static str);

const OUTCOMES: [&str; 4] = ["delivered", "partly_delivered", "perhaps_delivered", "not_delivered"];

described!(DeliveryOutcomeOut, json!({ "type": "string", "enum": OUTCOMES, "example": "delivered" }));

impl DeliveryOutcomeOut {
    fn of(row: &Notification, progress: &Progress) -> Option<Self> {
        let [delivered, partly, perhaps, not] = OUTCOMES;
        let outcome = match (row.status.as_str(), progress.verdict()) {
            ("pending", _) => return None,
            ("sent", Some(Verdict::Partly)) => partly,
            ("sent", Some(Verdict::Perhaps)) => perhaps,
            ("sent", _) => delivered,
            _ => not,
        };
        Some(Self(outcome))
    }
}

/// The state of a recipient.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct RecipientStateOut(&'static str);

const STATES: [&str; 4] = ["waiting", "delivered", "perhaps", "refused"];

described!(RecipientStateOut, json!({ "type": "string", "enum": STATES, "example": "delivered" }));

/// A recipient: a mail address, or a request's destination.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct RecipientOut {
    recipient: String,
    /// `perhaps`: it was sent, and there was no reply in time. It is sent once more (at most twice).
    state: RecipientStateOut,
    /// Why it is still waiting, or was refused.
    detail: Option<String>,
}

impl RecipientOut {
    fn of((recipient, standing): (&str, &Standing)) -> Self {
        let [waiting, delivered, perhaps, refused] = STATES;
        let (state, detail) = match standing {
            Standing::Waiting { reason } => (waiting, Some(reason.clone())),
            Standing::Delivered => (delivered, None),
            Standing::Perhaps { .. } => (perhaps, None),
            Standing::Refused { reason } => (refused, Some(reason.clone())),
        };
        Self { recipient: recipient.to_owned(), state: RecipientStateOut(state), detail }
    }
}

/// The event: the beginning of an alert, a reminder, its end, or a test.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct DeliveryEventOut(String);

described!(
    DeliveryEventOut,
    json!({ "type": "string", "enum": ["triggered", "reminder", "resolved", "test"], "example": "triggered" })
);

/// A notification that was sent on a channel, or waits to be sent.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct DeliveryOut {
    id: Id,
    channel_id: Id,
    channel_name: String,
    /// Null for a test.
    alert_id: Option<Id>,
    event: DeliveryEventOut,
    /// The subject line of the notification.
    subject: String,
    status: DeliveryStatusOut,
    /// The message that carries it, possibly with others: the receiver's idempotency key.
    message_id: Id,
    attempts: i32,
    next_attempt_at: Option<TimeOut>,
    /// Null while attempts continue.
    outcome: Option<DeliveryOutcomeOut>,
    /// The state of each recipient; empty before the first attempt. Recipients that accepted it do not get it again.
    recipients: Vec<RecipientOut>,
    /// Why the last attempt did not reach all recipients.
    error: Option<String>,
    created_at: TimeOut,
    attempted_at: Option<TimeOut>,
    finished_at: Option<TimeOut>,
}

impl From<Delivery> for DeliveryOut {
    fn from(delivery: Delivery) -> Self {
        let Delivery { notification: row, channel_name } = delivery;
        let moment = |at| TimeOut(Timestamp::from(at));
        let progress = Progress::read(row.recipients.as_deref());
        Self {
            outcome: DeliveryOutcomeOut::of(&row, &progress),
            recipients: progress.iter().map(RecipientOut::of).collect(),
            id: Id(row.id),
            channel_id: Id(row.channel_id),
            channel_name,
            alert_id: row.alert_id.map(Id),
            event: DeliveryEventOut(row.event),
            subject: row.subject,
            status: DeliveryStatusOut(row.status),
            message_id: Id(row.message_id),
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at.map(moment),
            error: row.error,
            created_at: moment(row.created_at),
            attempted_at: row.attempted_at.map(moment),
            finished_at: row.finished_at.map(moment),
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DeliveriesQuery {
    #[deserr(default)]
    channel_id: Option<IdParam>,
    #[deserr(default)]
    alert_id: Option<IdParam>,
    #[deserr(default)]
    status: Option<DeliveryStatusParam>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// List your notifications
///
/// Newest first, sent and waiting ones. The service keeps them for 30 days after they were delivered or have failed, and the last
/// of each channel for as long as its alert is open. A notification is retried until each recipient has accepted it; after an
/// attempt without a reply it is sent once more.
#[api_v2_operation(tags(Notifications), operation_id = "list_notification_deliveries")]
pub async fn list(ask: Checked<SignedIn, DeliveriesQuery>) -> Result<Listed<DeliveryOut>, ApiError> {
    let query = ask.query;
    let filter = DeliveryFilter {
        channel_id: query.channel_id.map(|IdParam(id)| id),
        alert_id: query.alert_id.map(|IdParam(id)| id),
        status: query.status.map(|DeliveryStatusParam(status)| status),
    };
    let wanted = page(query.limit, query.offset);
    let found = ask.state.store.list_deliveries(ask.subject.caller.user_id, filter, wanted).await?;
    Ok(Listed { items: found.items.into_iter().map(DeliveryOut::from).collect(), total: found.total })
}

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
use crate::http::extract::{Ask, SignedIn};
use crate::http::field_out::{Id, Moment};
use crate::http::reply::Listed;
use crate::store::{Delivery, DeliveryFilter};

const STATUSES: [&str; 3] = ["pending", "sent", "failed"];

/// Where a notification stands.
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

/// `pending` until it is delivered, or has been tried for a day.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct DeliveryStatusOut(String);

described!(DeliveryStatusOut, json!({ "type": "string", "enum": STATUSES, "example": "sent" }));

/// What is told: the beginning of an alert, that it is still there, its end, or nothing but a test.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct DeliveryEventOut(String);

described!(
    DeliveryEventOut,
    json!({ "type": "string", "enum": ["triggered", "reminder", "resolved", "test"], "example": "triggered" })
);

/// Something that was told on a channel, or is to be.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct DeliveryOut {
    id: Id,
    channel_id: Id,
    channel_name: String,
    /// Null for a test.
    alert_id: Option<Id>,
    event: DeliveryEventOut,
    /// What it says, in a line.
    subject: String,
    status: DeliveryStatusOut,
    /// The message that carries it, maybe with others: the receiver's idempotency key.
    message_id: Id,
    attempts: i32,
    next_attempt_at: Option<Moment>,
    /// Why the last attempt came to nothing.
    error: Option<String>,
    created_at: Moment,
    attempted_at: Option<Moment>,
    finished_at: Option<Moment>,
}

impl From<Delivery> for DeliveryOut {
    fn from(delivery: Delivery) -> Self {
        let Delivery { notification: row, channel_name } = delivery;
        let moment = |at| Moment(Timestamp::from(at));
        Self {
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
    /// How many entries at the most; 100 unless told.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// How many entries to leave out at the beginning.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// What you were told, and are to be told
///
/// Newest first. Kept for 30 days after it was delivered or given up.
#[api_v2_operation(tags(Notifications), operation_id = "list_notification_deliveries")]
pub async fn list(ask: Ask<SignedIn, DeliveriesQuery>) -> Result<Listed<DeliveryOut>, ApiError> {
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

//! `/alerts/{id}/notes`: what people write down about an alert.

use actix_web::web::Json;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde_json::json;

use super::out::AlertDetailOut;
use super::{find, in_body, not_found, out};
use crate::auth::access::Action;
use crate::http::error::ApiError;
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{PROSE, described, prose, string, text_field};
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery};
use crate::http::reply::fault_of;
use crate::http::task::run_detached;
use crate::store::{MAX_NOTES, Noted};

text_field!(
    /// The text of a note.
    NoteText(String),
    |text, location| {
        let text = prose(text, 1, 2_000, location)?;
        if text.trim().is_empty() {
            return Err(Faults::at(location, "value_error.any_str.blank", "ensure this value is not blank"));
        }
        Ok(text)
    },
    json!({ "type": "string", "minLength": 1, "maxLength": 2_000, "pattern": PROSE, "example": "Restarted the backup." })
);

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct NoteIn {
    text: NoteText,
}

/// Add a note to an alert
///
/// It appears in the timeline with your name, and cannot be changed. An alert has at most 100 notes.
#[api_v2_operation(tags(Alerts), operation_id = "add_alert_note")]
pub async fn add(
    ask: Checked<CallerAt<IdPath>, NoQuery, extract::Json<NoteIn>>,
) -> Result<Json<AlertDetailOut>, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let extract::Json(NoteIn { text: NoteText(text) }) = ask.body;
    let alert = find(&ask.state, &caller, path.id.0, Action::Respond).await?;
    let state = ask.state.clone();
    let noted = run_detached(async move { Ok(state.alerts.note(alert.owner_id, alert.id, &actor, &text).await?) });
    match noted.await? {
        Noted::Added(alert) => {
            let timeline = ask.state.store.alert_timeline(alert.id).await?;
            Ok(Json(AlertDetailOut::new(out(&ask.state, &caller, &alert).await?, timeline)))
        }
        Noted::NoAlert => Err(not_found()),
        Noted::Full => {
            let msg = format!("ensure the alert has at most {MAX_NOTES} notes");
            Err(in_body(fault_of("text", "value_error.list.max_items", &msg)))
        }
    }
}

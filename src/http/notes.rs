//! `/notes`: short texts that people keep for themselves.

use actix_web::web::Json;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;
use serde_json::json;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::{PROSE, described, prose, string, text_field};
use super::extract::param::PageQuery;
use super::extract::{self, Ask, CallerAt, IdPath, NoQuery, SignedIn};
use super::field_out::{Id, Moment};
use super::path::at;
use super::reply::{Done, Listed};
use crate::store::{MAX_NOTES, Note};

const MAX_TEXT: usize = 2_000;

text_field!(
    /// What is to be remembered, on one line or several.
    NoteText(String),
    |text, location| prose(text, 1, MAX_TEXT, location),
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_TEXT, "pattern": PROSE,
            "example": "Disk 3 of web-1 is on order" })
);

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct NoteIn {
    text: NoteText,
}

/// A short text.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct NoteOut {
    id: Id,
    /// As it was written.
    text: String,
    created_at: Moment,
}

impl From<Note> for NoteOut {
    fn from(note: Note) -> Self {
        Self { id: Id(note.id), text: note.text, created_at: Moment(note.created_at.into()) }
    }
}

/// Your notes
///
/// Newest first.
#[api_v2_operation(tags(Authentication), operation_id = "list_notes")]
pub async fn list(ask: Ask<SignedIn, PageQuery>) -> Result<Listed<NoteOut>, ApiError> {
    let found = ask.state.store.list_notes(ask.subject.caller.user_id, ask.query.into()).await?;
    Ok(Listed { items: found.items.into_iter().map(NoteOut::from).collect(), total: found.total })
}

/// Add a note
///
/// An account may have 100 of them (400 `quota_exceeded`).
#[api_v2_operation(tags(Authentication), operation_id = "create_note")]
pub async fn create(ask: Ask<SignedIn, NoQuery, extract::Json<NoteIn>>) -> Result<CreatedJson<NoteOut>, ApiError> {
    let SignedIn { caller, actor } = ask.subject;
    let extract::Json(NoteIn { text: NoteText(text) }) = ask.body;
    let created = ask.state.store.create_note(caller.user_id, text, actor).await?;
    created.map(|note| CreatedJson(note.into())).ok_or_else(too_many)
}

/// One note
#[api_v2_operation(tags(Authentication), operation_id = "read_note")]
pub async fn read(ask: Ask<CallerAt<IdPath>>) -> Result<Json<NoteOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    let note = ask.state.store.find_note(caller.user_id, path.id.0).await?.ok_or_else(not_found)?;
    Ok(Json(note.into()))
}

/// Delete a note
#[api_v2_operation(tags(Authentication), operation_id = "delete_note")]
pub async fn remove(ask: Ask<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let existed = ask.state.store.delete_note(caller.user_id, path.id.0, actor).await?;
    if existed { Ok(Done("Note deleted")) } else { Err(not_found()) }
}

fn too_many() -> ApiError {
    let detail = format!("This account may have {MAX_NOTES} notes: delete one");
    ApiError::Refused { code: ErrorCode::QuotaExceeded, detail: detail.into() }
}

fn not_found() -> ApiError {
    ApiError::not_found("Note not found")
}

/// Its routes. Fixed paths stand before those with parameters that they would match.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/notes").route(get().to(list)).route(post().to(create)),
        at("/notes/{id}").route(get().to(read)).route(delete().to(remove)),
    ]
}

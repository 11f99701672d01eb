//! `/servers/{id}/recordings`: what terminals on a server have shown. The server's agent keeps the files.

use std::io;
use std::time::Duration;

use actix_web::body::{BoxBody, SizedStream};
use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, Responder};
use bytes::Bytes;
use deserr::Deserr;
use futures_util::stream;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DataType, DefaultOperationRaw, DefaultSchemaRaw, Either, MediaRange, Response};
use paperclip::v2::schema::Apiv2Schema;
use serde::Serialize;
use signalbox_protocol::agent::TerminalRecorded;
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::param::{Id as IdParam, PageQuery};
use super::extract::{Checked, IdPath, OnServer, Recent, ServerPath, UseTerminal};
use super::field_out::{Bytes as BytesOut, Id, TimeOut};
use super::logs::turn_to_search;
use super::path::at;
use super::reply::Listed;
use super::server_events::Seconds;
use crate::audit::{Actor, Entry, action};
use crate::recordings::{Reader, Recordings};
use crate::state::State;
use crate::store::PageRequest;

/// The content type of asciicast files.
const ASCIICAST: &str = "application/x-asciicast";

/// How often a piece after the first is asked for. The client has its status by then and cannot know that it should try again, so
/// a moment of load must not cut the file off.
const ATTEMPTS: usize = 5;
/// The time between two attempts. No turn is held for its length.
const PAUSE: Duration = Duration::from_millis(500);

/// `/servers/{id}/recordings/{recording_id}`
#[derive(Debug, Clone, Copy, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct RecordingPath {
    id: IdParam,
    recording_id: IdParam,
}

impl ServerPath for RecordingPath {
    fn server_id(&self) -> Uuid {
        self.id.0
    }
}

/// The recording of a terminal that has ended.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct RecordingOut {
    /// The id of the terminal: the `target` of its entries in the audit log.
    id: Id,
    /// Who opened the terminal, and from which address.
    by: String,
    started_at: TimeOut,
    /// Seconds until the last output.
    seconds: Seconds,
    /// The length of the file.
    bytes: BytesOut,
    /// The SHA-256 of the file, in hexadecimal digits, as the agent says now. The entry `terminal.recorded` of the audit log has it
    /// as the agent said at the end of the terminal.
    sha256: String,
    /// Columns at the beginning.
    width: u16,
    /// Rows at the beginning.
    height: u16,
    /// Whether the agent was killed while it recorded, so that the file may have been changed before its hash was taken.
    interrupted: bool,
}

impl From<TerminalRecorded> for RecordingOut {
    fn from(recorded: TerminalRecorded) -> Self {
        Self {
            id: Id(recorded.stream_id),
            by: recorded.by,
            started_at: TimeOut(recorded.started_at),
            seconds: Seconds::of_seconds(recorded.seconds),
            bytes: BytesOut(recorded.bytes),
            sha256: recorded.sha256,
            width: recorded.columns,
            height: recorded.rows,
            interrupted: recorded.interrupted,
        }
    }
}

fn recordings(state: &State, server_id: Uuid, actor: &Actor) -> Recordings {
    let (by, asker) = (actor.to_string(), state.accounts.access.asker(actor));
    Recordings { registry: state.registry.clone(), server_id, by, asker }
}

/// List the recordings of terminals on a server
///
/// Newest first, of terminals that have ended. The server's agent records terminals if its own policy says so, and removes the
/// oldest recordings when there are too many. Not for tokens of programs.
#[api_v2_operation(tags(Servers), operation_id = "list_recordings")]
pub async fn list(ask: Checked<OnServer<UseTerminal, IdPath>, PageQuery>) -> Result<Listed<RecordingOut>, ApiError> {
    let page = PageRequest::from(ask.query);
    let limit = u32::try_from(page.limit).unwrap_or(u32::MAX);
    let recordings = recordings(&ask.state, ask.subject.access.server_id(), &ask.subject.actor);
    let listed = recordings.list(page.offset, limit).await?;
    Ok(Listed { items: listed.recordings.into_iter().map(RecordingOut::from).collect(), total: listed.total })
}

/// Read a recording
///
/// An asciicast file (version 2), as the server's agent has it now: compare its SHA-256 with the entry `terminal.recorded` of the
/// audit log. Each read has an entry `terminal.replay` there. The response breaks off if the agent disconnects. Not for tokens of
/// programs.
#[api_v2_operation(tags(Servers), operation_id = "read_recording")]
pub async fn read(ask: Checked<Recent<OnServer<UseTerminal, RecordingPath>>>) -> Result<Cast, ApiError> {
    let Checked { subject: Recent(subject), state, .. } = ask;
    let OnServer { access, actor, path, .. } = subject;
    let recording_id = path.recording_id.0;
    let turn = turn_to_search(&state, &actor).await?;
    let (reader, first) = recordings(&state, access.server_id(), &actor).read(recording_id).await?;
    drop(turn);
    let entry = Entry::new(action::TERMINAL_REPLAY, access.owner_id(), actor.clone());
    state.store.record(entry.on_server(access.server_id()).target(recording_id)).await?;
    Ok(Cast { state, actor, recording_id, reader, first })
}

/// A recording that is sent as fast as the client reads.
pub struct Cast {
    state: State,
    actor: Actor,
    recording_id: Uuid,
    reader: Reader,
    first: String,
}

impl Responder for Cast {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let Self { state, actor, recording_id, reader, first } = self;
        let bytes = reader.bytes();
        let pieces = stream::try_unfold((state, actor, reader, Some(first)), |left| async move {
            let (state, actor, mut reader, first) = left;
            let piece = match first {
                Some(first) => Some(first),
                None => next(&state, &actor, &mut reader).await.map_err(cut_off)?,
            };
            Ok::<_, io::Error>(piece.map(|piece| (Bytes::from(piece), (state, actor, reader, None))))
        });
        HttpResponse::Ok()
            .content_type(ASCIICAST)
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{recording_id}.cast\"")))
            .body(SizedStream::new(bytes, Box::pin(pieces)))
    }
}

/// The status has been sent already, so cutting off the response is the only way to report the error.
fn cut_off(error: ApiError) -> io::Error {
    tracing::info!(%error, "cannot read a recording to its end");
    io::Error::other(error.to_string())
}

/// The next piece. While the service or the agent is busy, it is asked for again a few times.
async fn next(state: &State, actor: &Actor, reader: &mut Reader) -> Result<Option<String>, ApiError> {
    for _ in 1..ATTEMPTS {
        match try_next(state, actor, reader).await {
            Err(ApiError::Refused { code: ErrorCode::Busy, .. }) => tokio::time::sleep(PAUSE).await,
            piece => return piece,
        }
    }
    try_next(state, actor, reader).await
}

/// The next piece, after a turn of its own: a client that reads slowly keeps nobody from searching.
async fn try_next(state: &State, actor: &Actor, reader: &mut Reader) -> Result<Option<String>, ApiError> {
    let _turn = turn_to_search(state, actor).await?;
    Ok(reader.next().await?)
}

impl Apiv2Schema for Cast {}

impl OperationModifier for Cast {
    fn update_response(op: &mut DefaultOperationRaw) {
        let text = DefaultSchemaRaw { data_type: Some(DataType::String), ..DefaultSchemaRaw::default() };
        let response = Response { description: Some("OK".to_owned()), schema: Some(text), ..Response::default() };
        op.responses.insert(StatusCode::OK.as_str().to_owned(), Either::Right(response));
        op.produces = ASCIICAST.parse().ok().map(|mime| [MediaRange(mime)].into());
    }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/servers/{id}/recordings").route(get().to(list)),
        at("/servers/{id}/recordings/{recording_id}").route(get().to(read)),
    ]
}

//! `/logs`: searches a log of a server; also selects the log for the socket that follows one.

use actix_web::web::Json;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::json;

use super::error::{ApiError, ErrorCode};
use super::extract::container::ContainerId;
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, Part, not_a_member};
use super::extract::field::{TEXT, bounded, described, string};
use super::extract::param::{Flag, TimeParam, Whole, in_order};
use super::extract::{Checked, OnServer, UseLogs};
use super::field_out::TimeOut as MomentOut;
use super::path::at;
use super::reply::fault_of;
use crate::audit::Actor;
use crate::logs::{FoundLine, Log, LogSource, Search, SearchResult};
use crate::registry::CallError;
use crate::shares::{Permit, Share};
use crate::state::State;

/// The default number of lines of a search or a socket.
const DEFAULT_TAIL: u32 = 100;
const MAX_TAIL: u64 = 10_000;

/// No file, container or pattern has a longer name.
const MAX_PATH: usize = 4_096;
const MAX_PATTERN: usize = 256;

/// The kind of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceParam {
    System,
    Container,
    File,
}

const SOURCES: [&str; 3] = ["system", "container", "file"];

impl Deserr<Faults> for SourceParam {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match string(value, location)?.as_str() {
            "system" => Ok(Self::System),
            "container" => Ok(Self::Container),
            "file" => Ok(Self::File),
            _ => Err(not_a_member(&SOURCES, location)),
        }
    }
}

described!(SourceParam, json!({ "type": "string", "enum": SOURCES, "default": "system" }));

/// The absolute path of a file.
#[derive(Debug, Clone)]
pub struct LogPath(pub String);

impl Deserr<Faults> for LogPath {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = bounded(string(value, location)?, 1, MAX_PATH, location)?;
        let is_absolute = text.starts_with('/');
        let msg = "ensure this value is an absolute path";
        if is_absolute { Ok(Self(text)) } else { Err(Faults::at(location, "value_error.path", msg)) }
    }
}

described!(LogPath, json!({ "type": "string", "minLength": 1, "maxLength": MAX_PATH, "pattern": r"^/[^\u0000]*$" }));

/// The text or pattern to search for.
#[derive(Debug, Clone)]
pub struct PatternParam(pub String);

impl Deserr<Faults> for PatternParam {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        bounded(string(value, location)?, 0, MAX_PATTERN, location).map(Self)
    }
}

described!(PatternParam, json!({ "type": "string", "maxLength": MAX_PATTERN, "pattern": TEXT }));

/// The log that three parameters select.
fn source_of(
    source: Option<SourceParam>,
    container_id: Option<&ContainerId>,
    path: Option<&LogPath>,
) -> Result<LogSource, Faults> {
    match source.unwrap_or(SourceParam::System) {
        SourceParam::System => Ok(LogSource::System),
        SourceParam::Container => {
            container_id.map(|id| LogSource::Container(id.0.clone())).ok_or_else(|| missing("container_id"))
        }
        SourceParam::File => path.map(|path| LogSource::File(path.0.clone())).ok_or_else(|| missing("path")),
    }
}

/// Checks that the parameter which the kind of log needs is there.
fn check_source(fields: &Fields<'_>) -> Result<(), Faults> {
    let needed = match fields.sound("source") {
        Some(SourceParam::Container) => "container_id",
        Some(SourceParam::File) => "path",
        Some(SourceParam::System) | None => return Ok(()),
    };
    if fields.is_given(needed) { Ok(()) } else { Err(missing(needed)) }
}

fn missing(field: &str) -> Faults {
    fault_of(field, "value_error.missing", "field required")
}

fn tail_of(tail: Option<Whole<0, MAX_TAIL>>) -> u32 {
    tail.and_then(|Whole(tail)| u32::try_from(tail).ok()).unwrap_or(DEFAULT_TAIL)
}

/// The query of the socket that follows a log.
#[derive(Debug, Deserr)]
#[deserr(error = Faults)]
pub struct WatchQuery {
    #[deserr(default)]
    source: Option<SourceParam>,
    #[deserr(default)]
    container_id: Option<ContainerId>,
    #[deserr(default)]
    path: Option<LogPath>,
    #[deserr(default)]
    tail: Option<Whole<0, MAX_TAIL>>,
}

impl CrossCheck for WatchQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_source(fields)
    }
}

impl WatchQuery {
    pub fn source(&self) -> Result<LogSource, Faults> {
        source_of(self.source, self.container_id.as_ref(), self.path.as_ref())
    }

    pub fn tail(&self) -> u32 {
        tail_of(self.tail)
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct LogsQuery {
    /// The kind of log: the system's log (the journal, or syslog), a container's, or a file.
    #[deserr(default)]
    source: Option<SourceParam>,
    /// The container, if `source` is `container`.
    #[deserr(default)]
    container_id: Option<ContainerId>,
    /// The file, if `source` is `file`. The server's own policy must allow it.
    #[deserr(default)]
    path: Option<LogPath>,
    /// No lines before this time. In files this applies to lines that begin with an RFC 3339 time, and those that
    /// follow them.
    #[deserr(default)]
    since: Option<TimeParam>,
    /// No lines after this time.
    #[deserr(default)]
    until: Option<TimeParam>,
    /// Maximum number of lines; the newest are returned. Defaults to 100.
    #[deserr(default)]
    tail: Option<Whole<0, MAX_TAIL>>,
    /// Only lines with this text. Ignores case unless the text has a capital letter.
    #[deserr(default)]
    q: Option<PatternParam>,
    /// Whether `q` is a regular expression. Defaults to false.
    #[deserr(default)]
    regex: Option<Flag>,
}

impl CrossCheck for LogsQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let mut faults = check_source(fields).err().unwrap_or_default();
        if let Err(found) = in_order(fields.sound("since"), fields.sound("until")) {
            faults.0.extend(found.0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

/// A line of a log.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct LogLineOut {
    /// When the line was written, if that is known.
    timestamp: Option<MomentOut>,
    /// `stdout` or `stderr`, or the program that wrote the line; null if there is only one.
    stream: Option<String>,
    message: String,
}

impl From<FoundLine> for LogLineOut {
    fn from(line: FoundLine) -> Self {
        Self { timestamp: line.timestamp.map(MomentOut), stream: line.stream, message: line.message }
    }
}

/// Lines of a log, oldest first.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct LogsOut {
    lines: Vec<LogLineOut>,
    /// Whether the search took too long or found too much, so that older lines may be missing.
    truncated: bool,
    /// The time of the oldest searched line, if `truncated` and if it is known.
    stopped_at: Option<MomentOut>,
}

impl From<SearchResult> for LogsOut {
    fn from(found: SearchResult) -> Self {
        Self {
            lines: found.lines.into_iter().map(LogLineOut::from).collect(),
            truncated: found.truncated,
            stopped_at: found.stopped_at.map(MomentOut),
        }
    }
}

/// Search a log of a server
///
/// Returns the newest lines that match, oldest first. The server's agent searches for at most 5 s. Its own policy
/// decides which logs may be read: 400 `agent_refused` says what it refused.
#[api_v2_operation(tags(Logs), operation_id = "search_logs")]
pub async fn search(ask: Checked<OnServer<UseLogs>, CrossChecked<LogsQuery>>) -> Result<Json<LogsOut>, ApiError> {
    let CrossChecked(query) = ask.query;
    let source = source_of(query.source, query.container_id.as_ref(), query.path.as_ref()).map_err(in_query)?;
    let log = Log { server_id: ask.subject.access.server_id(), source };
    let search = Search {
        since: query.since.map(|TimeParam(since)| since),
        until: query.until.map(|TimeParam(until)| until),
        tail: tail_of(query.tail),
        q: query.q.map(|PatternParam(q)| q),
        regex: query.regex.is_some_and(|Flag(regex)| regex),
    };
    let by = ask.subject.actor.to_string();
    let _permit = turn_to_search(&ask.state, &ask.subject.actor).await?;
    let found = ask.state.logs.search(&log, &search, by).await.map_err(refusal)?;
    Ok(Json(LogsOut::from(found)))
}

/// Waits until there is memory for the agent's findings, and for the caller's turn.
pub async fn turn_to_search(state: &State, by: &Actor) -> Result<Permit, ApiError> {
    state.limits.memory.room().await?;
    Ok(state.limits.shares.searches.enter(by.user_id.map_or(Share::Service, Share::Account)).await?)
}

/// The response for faults of the query.
pub fn in_query(faults: Faults) -> ApiError {
    ApiError::Invalid(faults.within(Part::Query))
}

/// The error of a refused search: an invalid pattern is a fault of the request, a missing file is not found, and a file
/// that the policy does not allow is refused.
fn refusal(error: CallError) -> ApiError {
    match error {
        CallError::Agent(error) if error.code == "invalid_pattern" => {
            in_query(fault_of("q", "value_error.regex", &error.detail))
        }
        CallError::Agent(error) if error.code == "not_found" => {
            ApiError::Refused { code: ErrorCode::NotFound, detail: error.detail.into() }
        }
        CallError::Agent(error) if error.code == "path_not_allowed" => {
            ApiError::Refused { code: ErrorCode::AgentRefused, detail: error.detail.into() }
        }
        error => error.into(),
    }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![at("/logs/{server_id}").route(get().to(search))]
}

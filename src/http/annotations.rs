//! `/servers/{id}/events` and `/events`: annotations, which people and programs write.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use reqwest::Url;
use serde_json::json;
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::{Faults, Part, not_a_member};
use super::extract::field::{At, FILLED_LINE, References, Tag, described, line, string, text_field};
use super::extract::param::Id as IdParam;
use super::extract::{self, Checked, IdPath, NoQuery, OnServer, Respond, ServerPath, SignedIn};
use super::reply::{Done, fault_of};
use super::selection::{Selection, select};
use super::server_events::ServerEventOut;
use super::task::run_detached;
use crate::audit::Actor;
use crate::auth::access::{Action, ServerAccess};
use crate::events::annotations::{Annotation, AnnotationError, AnnotationKind};
use crate::state::State;
use crate::store::ServerEvent;

impl Deserr<Faults> for AnnotationKind {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let given = string(value, location)?;
        let found = Self::ALL.into_iter().find(|kind| kind.word() == given);
        found.ok_or_else(|| not_a_member(&Self::ALL.map(Self::word), location))
    }
}

described!(AnnotationKind, json!({ "type": "string", "enum": AnnotationKind::ALL.map(AnnotationKind::word) }));

text_field!(
    /// The text of an annotation: one line, which charts show.
    AnnotationText(String),
    |text, location| line(text, 1, 200, location),
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": FILLED_LINE, "example": "Shop, new checkout" })
);

text_field!(
    /// A version: a number, a tag or a commit.
    VersionText(String),
    |text, location| line(text, 1, 100, location),
    json!({ "type": "string", "minLength": 1, "maxLength": 100, "pattern": FILLED_LINE, "example": "2.14.0" })
);

text_field!(
    /// The address of a page about it.
    PageUrl(String),
    |text, location| {
        let text = line(text, 1, 2_000, location)?;
        // The interface makes it a link for everyone who sees the server.
        let is_sound = Url::parse(&text).is_ok_and(|url| {
            ["http", "https"].contains(&url.scheme()) && url.username().is_empty() && url.password().is_none()
        });
        let msg = "ensure this value is an http or https address without a user name";
        if is_sound { Ok(text) } else { Err(Faults::at(location, "value_error.url", msg)) }
    },
    json!({ "type": "string", "format": "uri", "minLength": 1, "maxLength": 2_000, "pattern": "^https?://",
            "example": "https://git.example.com/shop/pipelines/4711" })
);

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AnnotationIn {
    kind: AnnotationKind,
    text: AnnotationText,
    /// When it happened: not in the future, and at most `--retention-events` days ago. Defaults to now.
    #[deserr(default)]
    at: Option<At>,
    #[deserr(default)]
    version: Option<VersionText>,
    #[deserr(default)]
    url: Option<PageUrl>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AnnotationsIn {
    /// The servers, in addition to those of `tag`.
    #[deserr(default)]
    server_ids: Option<References>,
    /// All your servers that have this tag now.
    #[deserr(default)]
    tag: Option<Tag>,
    /// All your servers. Defaults to false.
    #[deserr(default)]
    all: Option<bool>,
    kind: AnnotationKind,
    text: AnnotationText,
    /// When it happened: not in the future, and at most `--retention-events` days ago. Defaults to now.
    #[deserr(default)]
    at: Option<At>,
    #[deserr(default)]
    version: Option<VersionText>,
    #[deserr(default)]
    url: Option<PageUrl>,
}

impl From<AnnotationIn> for Annotation {
    fn from(input: AnnotationIn) -> Self {
        Self {
            kind: input.kind,
            text: input.text.0,
            at: input.at.map(|At(at)| at),
            version: input.version.map(|VersionText(version)| version),
            url: input.url.map(|PageUrl(url)| url),
        }
    }
}

/// `/servers/{id}/events/{event_id}`
#[derive(Debug, Clone, Copy, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AnnotationPath {
    id: IdParam,
    event_id: IdParam,
}

impl ServerPath for AnnotationPath {
    fn server_id(&self) -> Uuid {
        self.id.0
    }
}

/// Add a deploy or a note to a server
///
/// Charts and the timeline mark it at its time. A server keeps the newest 1,000 of them. An account may make 1,000 such requests
/// an hour.
#[api_v2_operation(tags(Servers), operation_id = "annotate_server")]
pub async fn annotate(
    ask: Checked<OnServer<Respond, IdPath>, NoQuery, extract::Json<AnnotationIn>>,
) -> Result<CreatedJson<ServerEventOut>, ApiError> {
    let (OnServer { access, caller, actor, .. }, extract::Json(input)) = (ask.subject, ask.body);
    let written = write(ask.state, caller.user_id, vec![access], input.into(), actor).await?;
    let only = written.into_iter().next().ok_or_else(|| ApiError::not_found("Server not found"))?;
    Ok(CreatedJson(only.into()))
}

/// Add a deploy or a note to many servers
///
/// Select servers, a tag, or all; selecting none is an error and never means all. Counts as one request.
#[api_v2_operation(tags(Servers), operation_id = "annotate_servers")]
pub async fn annotate_many(
    ask: Checked<SignedIn, NoQuery, extract::Json<AnnotationsIn>>,
) -> Result<CreatedJson<Vec<ServerEventOut>>, ApiError> {
    let (SignedIn { caller, actor }, extract::Json(input)) = (ask.subject, ask.body);
    let selection = Selection {
        named: input.server_ids.map(|References(ids)| ids).unwrap_or_default(),
        tag: input.tag.map(|Tag(tag)| tag),
        is_all: input.all.unwrap_or_default(),
    };
    let none = "No server is selected: set server_ids, a tag that at least one server has, or all";
    let selected = select(&ask.state, &caller, selection, Action::Respond, none).await?;
    let AnnotationsIn { kind, text, at, version, url, .. } = input;
    let annotation = AnnotationIn { kind, text, at, version, url };
    let written = write(ask.state, caller.user_id, selected, annotation.into(), actor).await?;
    Ok(CreatedJson(written.into_iter().map(ServerEventOut::from).collect()))
}

/// Delete a deploy or a note
///
/// Other events cannot be deleted: for them, the response is that of an event that does not exist.
#[api_v2_operation(tags(Servers), operation_id = "delete_annotation")]
pub async fn delete(ask: Checked<OnServer<Respond, AnnotationPath>>) -> Result<Done, ApiError> {
    let (OnServer { access, actor, path, .. }, state) = (ask.subject, ask.state);
    let (owner_id, server_id) = (access.owner_id(), access.server_id());
    let deleted =
        run_detached(
            async move { Ok(state.events.delete_annotation(owner_id, server_id, path.event_id.0, actor).await?) },
        );
    if deleted.await? { Ok(Done("Event deleted")) } else { Err(ApiError::not_found("Event not found")) }
}

async fn write(
    state: State,
    writer_id: Uuid,
    servers: Vec<ServerAccess>,
    annotation: Annotation,
    actor: Actor,
) -> Result<Vec<ServerEvent>, ApiError> {
    let servers: Vec<(Uuid, Uuid)> = servers.into_iter().map(|it| (it.server_id(), it.owner_id())).collect();
    run_detached(async move { Ok(state.events.annotate(writer_id, &servers, annotation, actor).await?) }).await
}

impl From<AnnotationError> for ApiError {
    fn from(error: AnnotationError) -> Self {
        let msg = error.to_string();
        match error {
            AnnotationError::InFuture | AnnotationError::TooOld(_) => {
                Self::Invalid(fault_of("at", "value_error.range", &msg).within(Part::Body))
            }
            AnnotationError::TooMany => Self::Refused { code: ErrorCode::QuotaExceeded, detail: msg.into() },
            AnnotationError::Store(error) => error.into(),
        }
    }
}

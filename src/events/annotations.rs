//! Annotations: deploys and notes, which people and programs write on servers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{DAY_MS, ServerEvents};
use crate::audit::{Actor, Entry, action};
use crate::store::{NewServerEvent, ServerEvent, StoreError};

/// Requests of an account that are accepted at once, and per hour in the long run: a pipeline that deploys to each of a
/// thousand servers by itself passes, and one that repeats a step without end does not fill the audit log.
const MAX_PER_HOUR: f64 = 1_000.0;

/// How far a writer's clock may be ahead: such a time counts as the present.
const AHEAD_MS: i64 = 60_000;

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub kind: AnnotationKind,
    pub text: String,
    /// Defaults to now.
    pub at: Option<Timestamp>,
    pub version: Option<String>,
    pub url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationKind {
    Deploy,
    Note,
}

impl AnnotationKind {
    pub const ALL: [Self; 2] = [Self::Deploy, Self::Note];

    /// The kind of its events.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Note => "note",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AnnotationError {
    #[error("ensure that the time is not in the future")]
    InFuture,
    /// The event would be removed at once.
    #[error("ensure that the time is at most {0} days ago: older events are not kept")]
    TooOld(u32),
    #[error("an account may write {MAX_PER_HOUR} deploys and notes an hour, try again later")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ServerEvents {
    /// Writes an annotation on these servers, each with its owner, for a user. Returns the events of those that still exist.
    pub async fn annotate(
        &self,
        writer_id: Uuid,
        servers: &[(Uuid, Uuid)],
        annotation: Annotation,
        actor: Actor,
    ) -> Result<Vec<ServerEvent>, AnnotationError> {
        let at = self.time_of(&annotation)?;
        // The pace of who writes: a guest must not use up the owner's.
        self.writers.take(writer_id).ok_or(AnnotationError::TooMany)?;
        let detail = detail(&annotation, &actor);
        let event = |(id, _): &(Uuid, Uuid)| NewServerEvent::new(*id, annotation.kind.word(), at, detail.clone());
        let mut of_owner: BTreeMap<Uuid, usize> = BTreeMap::new();
        servers.iter().for_each(|(_, owner_id)| *of_owner.entry(*owner_id).or_default() += 1);
        let entry = |(owner_id, servers): (Uuid, usize)| {
            Entry::new(action::EVENT_CREATE, owner_id, actor.clone()).detail(recorded(&annotation, servers))
        };
        let entries = of_owner.into_iter().map(entry).collect();
        Ok(self.store.annotate(servers.iter().map(event).collect(), entries).await?)
    }

    /// Deletes an annotation of a server. Returns whether it existed.
    pub async fn delete_annotation(
        &self,
        owner_id: Uuid,
        server_id: Uuid,
        id: Uuid,
        actor: Actor,
    ) -> Result<bool, StoreError> {
        let Some(event) = self.store.find_annotation(server_id, id).await? else { return Ok(false) };
        let written: Value = serde_json::from_str(&event.detail).unwrap_or_default();
        let entry = Entry::new(action::EVENT_DELETE, owner_id, actor)
            .on_server(server_id)
            .target(id)
            .detail(json!({ "kind": event.kind, "text": written.get("text") }));
        self.store.delete_annotation(server_id, id, entry).await
    }

    fn time_of(&self, annotation: &Annotation) -> Result<Timestamp, AnnotationError> {
        let now = self.clock.now();
        let at = annotation.at.unwrap_or(now);
        if at > now.plus_millis(AHEAD_MS) {
            return Err(AnnotationError::InFuture);
        }
        if at < now.plus_millis(-i64::from(self.kept_days).saturating_mul(DAY_MS)) {
            return Err(AnnotationError::TooOld(self.kept_days));
        }
        Ok(at.min(now))
    }
}

/// The limit of all writers.
pub(super) const WRITER_LIMIT: super::Limit = super::Limit { burst: MAX_PER_HOUR, an_hour: MAX_PER_HOUR };

/// The detail of the event.
fn detail(annotation: &Annotation, actor: &Actor) -> Value {
    let fields = [
        ("text", Some(annotation.text.clone())),
        ("version", annotation.version.clone()),
        ("url", annotation.url.clone()),
        ("username", Some(actor.username.to_string())),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?))));
    given.collect::<Map<_, _>>().into()
}

/// The detail of the audit entry. An address may contain a secret.
fn recorded(annotation: &Annotation, servers: usize) -> Value {
    let mut detail = Map::new();
    detail.insert("kind".to_owned(), annotation.kind.word().into());
    detail.insert("text".to_owned(), annotation.text.clone().into());
    if let Some(version) = &annotation.version {
        detail.insert("version".to_owned(), version.clone().into());
    }
    if servers > 1 {
        detail.insert("servers".to_owned(), servers.into());
    }
    detail.into()
}

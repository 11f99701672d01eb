//! Views and dashboards in responses.

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::extract::field::described;
use crate::http::field_out::{Id, TimeOut};
use crate::store::{Caller, OwnedView, View};

/// What a view shows, with all fields.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct DefinitionOut(Value);

described!(
    DefinitionOut,
    json!({
        "type": "object",
        "required": ["version", "series", "servers", "tag", "function", "by", "top", "rank", "range", "start", "end",
                     "events"],
        "properties": {
            "version": { "type": "integer" },
            "series": { "type": "array", "items": { "type": "string" } },
            "servers": { "type": "array", "items": { "type": "string", "format": "uuid" } },
            "tag": { "type": "string", "nullable": true },
            "function": { "type": "string", "enum": ["avg", "sum", "min", "max"] },
            "by": { "type": "string", "enum": ["server", "tag", "series", "none"] },
            "top": { "type": "integer" },
            "rank": { "type": "string", "enum": ["max", "mean", "last"] },
            "range": { "type": "string", "nullable": true },
            "start": { "type": "string", "format": "date-time", "nullable": true },
            "end": { "type": "string", "format": "date-time", "nullable": true },
            "events": { "type": "boolean" },
        },
    })
);

/// The views of a dashboard, with all fields.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct LayoutOut(Value);

described!(
    LayoutOut,
    json!({
        "type": "object",
        "required": ["version", "panels", "range"],
        "properties": {
            "version": { "type": "integer" },
            "panels": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["view_id", "width", "height"],
                    "properties": {
                        "view_id": { "type": "string", "format": "uuid" },
                        "width": { "type": "integer" },
                        "height": { "type": "integer" },
                    },
                },
            },
            "range": { "type": "string", "nullable": true },
        },
    })
);

/// Whom a view or dashboard belongs to.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct OwnerOut {
    id: Id,
    username: String,
}

/// The accounts that a view or dashboard is shared with.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct SharedWithOut(String);

described!(SharedWithOut, json!({ "type": "string", "enum": ["nobody", "administrators", "everyone"] }));

/// A saved view of series.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ViewOut {
    id: Id,
    name: String,
    description: String,
    definition: DefinitionOut,
    /// The number of the definition's servers that you cannot see. Their ids are left out.
    hidden_servers: u64,
    shared_with: SharedWithOut,
    owner: OwnerOut,
    /// Whether you are the owner, who alone may change it.
    mine: bool,
    created_at: TimeOut,
    updated_at: TimeOut,
}

/// A dashboard.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct DashboardOut {
    id: Id,
    name: String,
    description: String,
    layout: LayoutOut,
    shared_with: SharedWithOut,
    owner: OwnerOut,
    /// Whether you are the owner, who alone may change it.
    mine: bool,
    created_at: TimeOut,
    updated_at: TimeOut,
}

impl ViewOut {
    /// A view as its definition is; [`Self::hide_servers`] follows for the views of others.
    pub(super) fn new(OwnedView { view, owner_name }: OwnedView, caller: &Caller) -> Self {
        Self {
            id: Id(view.id),
            definition: DefinitionOut(parsed(&view)),
            hidden_servers: 0,
            name: view.name,
            description: view.description,
            shared_with: SharedWithOut(view.shared_with),
            mine: view.owner_id == caller.user_id,
            owner: OwnerOut { id: Id(view.owner_id), username: owner_name },
            created_at: TimeOut(view.created_at.into()),
            updated_at: TimeOut(view.updated_at.into()),
        }
    }

    /// A view of the caller.
    pub(super) fn own(view: View, caller: &Caller) -> Self {
        Self::new(OwnedView { view, owner_name: caller.username.to_string() }, caller)
    }

    pub(super) fn is_mine(&self) -> bool {
        self.mine
    }

    /// The servers that the definition names.
    pub(super) fn server_ids(&self) -> Vec<Uuid> {
        let named = self.definition.0.get("servers").and_then(Value::as_array);
        named.into_iter().flatten().filter_map(id_of).collect()
    }

    /// Leaves out ids of servers, and counts them.
    pub(super) fn hide_servers(&mut self, is_hidden: impl Fn(Uuid) -> bool) {
        let Some(named) = self.definition.0.get_mut("servers").and_then(Value::as_array_mut) else { return };
        let before = named.len();
        named.retain(|id| id_of(id).is_some_and(|id| !is_hidden(id)));
        self.hidden_servers = before.saturating_sub(named.len()) as u64;
    }
}

impl DashboardOut {
    pub(super) fn new(OwnedView { view, owner_name }: OwnedView, caller: &Caller) -> Self {
        Self {
            id: Id(view.id),
            layout: LayoutOut(parsed(&view)),
            name: view.name,
            description: view.description,
            shared_with: SharedWithOut(view.shared_with),
            mine: view.owner_id == caller.user_id,
            owner: OwnerOut { id: Id(view.owner_id), username: owner_name },
            created_at: TimeOut(view.created_at.into()),
            updated_at: TimeOut(view.updated_at.into()),
        }
    }

    /// A dashboard of the caller.
    pub(super) fn own(view: View, caller: &Caller) -> Self {
        Self::new(OwnedView { view, owner_name: caller.username.to_string() }, caller)
    }
}

fn id_of(value: &Value) -> Option<Uuid> {
    value.as_str().and_then(|text| Uuid::try_parse(text).ok())
}

fn parsed(row: &View) -> Value {
    let unreadable = |error: &serde_json::Error| {
        tracing::error!(view.id = %row.id, %error, "a saved definition is unreadable");
    };
    serde_json::from_str(&row.definition).inspect_err(unreadable).unwrap_or_default()
}

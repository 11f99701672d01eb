//! Views and dashboards in responses.

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::extract::field::described;
use crate::http::field_out::{Id, TimeOut};
use crate::store::View;

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

/// A saved view of series.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ViewOut {
    id: Id,
    name: String,
    description: String,
    definition: DefinitionOut,
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
    created_at: TimeOut,
    updated_at: TimeOut,
}

impl From<View> for ViewOut {
    fn from(row: View) -> Self {
        Self {
            id: Id(row.id),
            definition: DefinitionOut(parsed(&row)),
            name: row.name,
            description: row.description,
            created_at: TimeOut(row.created_at.into()),
            updated_at: TimeOut(row.updated_at.into()),
        }
    }
}

impl From<View> for DashboardOut {
    fn from(row: View) -> Self {
        Self {
            id: Id(row.id),
            layout: LayoutOut(parsed(&row)),
            name: row.name,
            description: row.description,
            created_at: TimeOut(row.created_at.into()),
            updated_at: TimeOut(row.updated_at.into()),
        }
    }
}

fn parsed(row: &View) -> Value {
    let unreadable = |error: &serde_json::Error| {
        tracing::error!(view.id = %row.id, %error, "a saved definition is unreadable");
    };
    serde_json::from_str(&row.definition).inspect_err(unreadable).unwrap_or_default()
}

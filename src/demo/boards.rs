//! A dashboard of the simulated fleet, so that a newcomer sees what one is.

use serde_json::json;
use uuid::Uuid;

use super::{Scene, account};
use crate::store::{NewView, SharedWith, StoreError, ViewKind, ViewReader};

/// A chart of the dashboard: one series, a line for each server.
struct Chart {
    name: &'static str,
    description: &'static str,
    series: &'static str,
    tag: Option<&'static str>,
    range: &'static str,
}

const CHARTS: [Chart; 2] = [
    Chart {
        name: "Busiest servers",
        description: "CPU of the five busiest servers",
        series: "cpu_percent",
        tag: None,
        range: "24h",
    },
    Chart {
        name: "Failed requests",
        description: "What the web servers answered with an error, and the releases of these days",
        series: "http_errors",
        tag: Some("web"),
        range: "7d",
    },
];

/// Saves the views and the dashboard.
pub async fn write(scene: &Scene<'_>) -> Result<(), StoreError> {
    let mut panels = Vec::new();
    for chart in CHARTS {
        let definition = json!({
            "version": 1, "series": [chart.series], "servers": [], "tag": chart.tag, "function": "avg", "by": "server",
            "top": 5, "rank": "max", "range": chart.range, "start": null, "end": null, "events": true,
        });
        let id = save(scene, ViewKind::View, chart.name, chart.description, definition.to_string()).await?;
        panels.push(json!({ "view_id": id, "width": 6, "height": 2 }));
    }
    let layout = json!({ "version": 1, "panels": panels, "range": null });
    save(scene, ViewKind::Dashboard, "Shop", "The servers of the shop at a glance", layout.to_string()).await?;
    Ok(())
}

/// Saves one. What an unfinished start has left is used again.
async fn save(
    scene: &Scene<'_>,
    kind: ViewKind,
    name: &str,
    description: &str,
    definition: String,
) -> Result<Uuid, StoreError> {
    let reader = ViewReader { user_id: scene.owner_id, audiences: Vec::new() };
    let known = scene.state.store.list_views(&reader, kind, account::ALL).await?;
    if let Some(left) = known.items.iter().find(|it| it.view.name == name) {
        return Ok(left.view.id);
    }
    let new = NewView {
        owner_id: scene.owner_id,
        kind,
        name: name.to_owned(),
        description: description.to_owned(),
        definition,
        shared_with: SharedWith::Nobody,
    };
    Ok(scene.state.store.create_view(new, scene.visitor.clone()).await?.id)
}

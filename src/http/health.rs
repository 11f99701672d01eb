//! Liveness, readiness, and the service's own metrics.

use actix_web::{HttpResponse, web};
use serde_json::json;

use super::prometheus::TEXT_FORMAT;
use crate::cluster::company::BusStatus;
use crate::observe::Exporter;
use crate::state::State;

/// Returns 200 while the process is up.
pub async fn live() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "status": "ok" }))
}

/// Returns 200 if everything that requests need is available; 503 names the part that is not.
pub async fn ready(state: web::Data<State>) -> HttpResponse {
    if let Err(error) = state.store.ping().await {
        tracing::warn!(%error, "the database does not answer");
        return not_ready("database", "The database does not answer");
    }
    if state.limits.disk.is_full() {
        return not_ready("disk", "The disk is nearly full: no samples are stored");
    }
    // A database can answer but refuse writes, for example if it is read-only or its disk is full.
    if state.metrics.recorder.is_failing() {
        return not_ready("database", "The database refuses writes");
    }
    if state.cluster.is_draining() {
        return not_ready("draining", "This instance is stopping");
    }
    let bus = match state.cluster.company.bus() {
        BusStatus::None => "none",
        BusStatus::Up => "ok",
        BusStatus::Away => {
            return not_ready("bus", "The message bus does not answer: servers of other instances cannot be reached");
        }
    };
    HttpResponse::Ok().json(json!({ "status": "ok", "database": "ok", "disk": "ok", "bus": bus }))
}

fn not_ready(part: &str, detail: &str) -> HttpResponse {
    let body = json!({ "detail": detail, "status_code": 503, "code": "not_ready", "part": part });
    HttpResponse::ServiceUnavailable().json(body)
}

/// The service's own metrics, in Prometheus' text format.
pub async fn metrics(state: web::Data<State>, exporter: web::Data<Exporter>) -> HttpResponse {
    metrics::gauge!("signalbox_dashboards_connected").set(state.feeds.count() as f64);
    HttpResponse::Ok().content_type(TEXT_FORMAT).body(exporter.render())
}

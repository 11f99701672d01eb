//! `/alerts`: alerts, and the routes of thresholds and silences.

mod notes;
mod out;
mod reach;
mod series_in;
pub(super) mod silence_in;
pub mod silences;
pub(super) mod threshold_in;
pub mod thresholds;
pub(super) mod words;

use std::collections::{HashMap, HashSet};

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, post, put};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use uuid::Uuid;

use super::error::ApiError;
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, Part};
use super::extract::param::{Id, MAX_OFFSET, TimeParam, Whole, in_order, page};
use super::extract::{CallerAt, Checked, IdPath, SignedIn};
use super::path::at;
use super::people_out::PersonOut;
use super::reply::Listed;
use super::task::run_detached;
use crate::auth::access::Action;
use crate::change::Change;
use crate::effects;
use crate::state::State;
use crate::store::{Alert, AlertFilter, Caller, Reach};
use out::{AlertDetailOut, AlertOut, AlertSummaryOut};
use reach::{expect_allowed, servers_listed};
use words::{AlertSourceIn, AlertStatusIn, SeverityIn};

/// How often a change is tried when others change the same row at the same time.
const TRIES: usize = 5;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AlertsQuery {
    #[deserr(default)]
    status: Option<AlertStatusIn>,
    #[deserr(default)]
    server_id: Option<Id>,
    #[deserr(default)]
    severity: Option<SeverityIn>,
    #[deserr(default)]
    metric_type: Option<AlertSourceIn>,
    #[deserr(default)]
    threshold_id: Option<Id>,
    /// Only alerts that were not resolved before this time.
    #[deserr(default)]
    since: Option<TimeParam>,
    /// Only alerts that were triggered before this time.
    #[deserr(default)]
    until: Option<TimeParam>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

impl CrossCheck for AlertsQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        in_order(fields.sound("since"), fields.sound("until"))
    }
}

/// List alerts
///
/// Those of your servers and of servers that are shared with you, newest first. `since` and `until` select the alerts that
/// were unresolved at any time between them.
#[api_v2_operation(tags(Alerts), operation_id = "list_alerts")]
pub async fn list(ask: Checked<SignedIn, CrossChecked<AlertsQuery>>) -> Result<Listed<AlertOut>, ApiError> {
    let CrossChecked(query) = ask.query;
    let filter = AlertFilter {
        status: query.status.map(|AlertStatusIn(status)| status.word()),
        server_id: query.server_id.map(|Id(id)| id),
        severity: query.severity.map(|SeverityIn(severity)| severity.word()),
        metric_type: query.metric_type.map(|AlertSourceIn(word)| word),
        threshold_id: query.threshold_id.map(|Id(id)| id),
        since: query.since.map(|TimeParam(since)| since),
        until: query.until.map(|TimeParam(until)| until),
    };
    let wanted = page(query.limit, query.offset);
    let caller = &ask.subject.caller;
    let listed = servers_listed(&ask.state, caller, filter.server_id).await?;
    let found = ask.state.store.list_alerts(&listed, filter, wanted).await?;
    Ok(Listed { items: with_owners(&ask.state, caller, &found.items).await?, total: found.total })
}

/// Count alerts
///
/// Those of your servers and of servers that are shared with you, by status and severity, and for each server.
#[api_v2_operation(tags(Alerts), operation_id = "summarize_alerts")]
pub async fn summary(ask: Checked<SignedIn>) -> Result<Json<AlertSummaryOut>, ApiError> {
    let visible = ask.state.accounts.access.visible(&ask.subject.caller);
    let counts = ask.state.store.count_alerts(&visible).await?;
    Ok(Json(AlertSummaryOut::new(counts)))
}

/// Get an alert
///
/// With its timeline.
#[api_v2_operation(tags(Alerts), operation_id = "read_alert")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<AlertDetailOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    let alert = find(&ask.state, &caller, path.id.0, Action::See).await?;
    let timeline = ask.state.store.alert_timeline(alert.id).await?;
    Ok(Json(AlertDetailOut::new(out(&ask.state, &caller, &alert).await?, timeline)))
}

/// Acknowledge an alert
///
/// Stops its reminders. An alert that is already acknowledged or resolved does not change.
#[api_v2_operation(tags(Alerts), operation_id = "acknowledge_alert")]
pub async fn acknowledge(ask: Checked<CallerAt<IdPath>>) -> Result<Json<AlertOut>, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let alert = find(&ask.state, &caller, path.id.0, Action::Respond).await?;
    let state = ask.state.clone();
    let changed = run_detached(async move { Ok(state.alerts.acknowledge(alert.owner_id, alert.id, &actor).await?) });
    let alert = changed.await?.ok_or_else(not_found)?;
    Ok(Json(out(&ask.state, &caller, &alert).await?))
}

/// Resolve an alert
///
/// The threshold does not fire again until the metric has recovered. An alert that is already resolved does not change.
#[api_v2_operation(tags(Alerts), operation_id = "resolve_alert")]
pub async fn resolve(ask: Checked<CallerAt<IdPath>>) -> Result<Json<AlertOut>, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let alert = find(&ask.state, &caller, path.id.0, Action::Respond).await?;
    let state = ask.state.clone();
    let changed = run_detached(async move {
        let resolved = state.alerts.resolve(alert.owner_id, alert.id, &actor).await?;
        effects::commit(&state, Change::AlertResolved { alert_id: alert.id }).await;
        Ok(resolved)
    });
    let alert = changed.await?.ok_or_else(not_found)?;
    Ok(Json(out(&ask.state, &caller, &alert).await?))
}

/// The alert for the answer, with its owner.
pub(super) async fn out(state: &State, caller: &Caller, alert: &Alert) -> Result<AlertOut, ApiError> {
    with_owners(state, caller, std::slice::from_ref(alert)).await?.pop().ok_or_else(not_found)
}

/// The alerts for an answer, with the owners of their servers. Those whose owner has just been deleted are gone too.
async fn with_owners(state: &State, caller: &Caller, alerts: &[Alert]) -> Result<Vec<AlertOut>, ApiError> {
    let others = alerts.iter().map(|alert| alert.owner_id).filter(|id| *id != caller.user_id);
    let others: Vec<Uuid> = others.collect::<HashSet<_>>().into_iter().collect();
    let mut names = if others.is_empty() { HashMap::new() } else { state.store.usernames(&others).await? };
    names.insert(caller.user_id, caller.username.to_string());
    let owner = |id: Uuid| Some(PersonOut::new(id, names.get(&id)?.clone()));
    Ok(alerts.iter().filter_map(|alert| Some(AlertOut::new(alert, owner(alert.owner_id)?))).collect())
}

/// The alert, if the caller may do this to its server.
async fn find(state: &State, caller: &Caller, id: Uuid, action: Action) -> Result<Alert, ApiError> {
    let alert = state.store.find_alert(id).await?.ok_or_else(not_found)?;
    let reach = Reach { server_id: Some(alert.server_id), tag: None };
    expect_allowed(state, caller, (alert.owner_id, &reach), action, not_found).await?;
    Ok(alert)
}

fn not_found() -> ApiError {
    ApiError::not_found("Alert not found")
}

/// Turns faults that depend on stored data into an error of the body.
fn in_body(faults: Faults) -> ApiError {
    ApiError::Invalid(faults.within(Part::Body))
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/alerts").route(get().to(list)),
        at("/alerts/summary").route(get().to(summary)),
        at("/alerts/thresholds").route(get().to(thresholds::list)).route(post().to(thresholds::create)),
        at("/alerts/thresholds/{id}")
            .route(get().to(thresholds::read))
            .route(put().to(thresholds::update))
            .route(delete().to(thresholds::delete)),
        at("/alerts/silences").route(get().to(silences::list)).route(post().to(silences::create)),
        at("/alerts/silences/{id}")
            .route(get().to(silences::read))
            .route(put().to(silences::update))
            .route(delete().to(silences::delete)),
        at("/alerts/{id}").route(get().to(read)),
        at("/alerts/{id}/acknowledge").route(post().to(acknowledge)),
        at("/alerts/{id}/resolve").route(post().to(resolve)),
        at("/alerts/{id}/notes").route(post().to(notes::add)),
    ]
}

//! `/alerts/thresholds`: the rules for alerts.

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;
use uuid::Uuid;

use super::reach::{expect_allowed, expect_same_owner, owner_of, servers_listed};
use super::threshold_in::{ThresholdIn, ThresholdPatchIn};
use super::words::{ComparisonOut, MetricTypeIn, MetricTypeOut, SeverityOut, TroubleOut};
use super::{TRIES, in_body};
use crate::auth::access::Action;
use crate::change::Change;
use crate::effects;
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::fault::Faults;
use crate::http::extract::param::{Flag, Id as IdParam, MAX_OFFSET, Whole, page};
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery, SignedIn};
use crate::http::field_out::{Id, TimeOut};
use crate::http::reply::{Done, Listed};
use crate::http::task::run_detached;
use crate::state::State;
use crate::store::{Caller, Reach, Threshold, ThresholdFilter};

/// A rule: which values of a metric raise an alert.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ThresholdOut {
    id: Id,
    /// Null if it is for a tag or for all servers.
    server_id: Option<Id>,
    tag: Option<String>,
    all: bool,
    metric_type: MetricTypeOut,
    /// For `series`: the name of the open series.
    series: Option<String>,
    threshold_value: f64,
    clear_value: Option<f64>,
    comparison: ComparisonOut,
    enabled: bool,
    duration_seconds: i32,
    target: Option<String>,
    states: Option<Vec<TroubleOut>>,
    severity: SeverityOut,
    created_at: TimeOut,
    updated_at: TimeOut,
}

impl From<Threshold> for ThresholdOut {
    fn from(row: Threshold) -> Self {
        let states = |states: String| states.split(',').map(|state| TroubleOut(state.to_owned())).collect();
        Self {
            id: Id(row.id),
            all: row.server_id.is_none() && row.tag.is_none(),
            server_id: row.server_id.map(Id),
            tag: row.tag,
            metric_type: MetricTypeOut(row.metric_type),
            series: row.series,
            threshold_value: row.threshold_value,
            clear_value: row.clear_value,
            comparison: ComparisonOut(row.comparison),
            enabled: row.is_enabled,
            duration_seconds: row.duration_seconds,
            target: row.target,
            states: row.states.map(states),
            severity: SeverityOut(row.severity),
            created_at: TimeOut(row.created_at.into()),
            updated_at: TimeOut(row.updated_at.into()),
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ThresholdsQuery {
    /// Only those that name this server, not those for its tags or for all servers.
    #[deserr(default)]
    server_id: Option<IdParam>,
    #[deserr(default)]
    enabled: Option<Flag>,
    #[deserr(default)]
    metric_type: Option<MetricTypeIn>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// List your thresholds
///
/// Newest first, with those that name a server that is shared with you.
#[api_v2_operation(tags(Alerts), operation_id = "list_thresholds")]
pub async fn list(ask: Checked<SignedIn, ThresholdsQuery>) -> Result<Listed<ThresholdOut>, ApiError> {
    let query = ask.query;
    let filter = ThresholdFilter {
        server_id: query.server_id.map(|IdParam(id)| id),
        is_enabled: query.enabled.map(|Flag(enabled)| enabled),
        metric_type: query.metric_type.map(|MetricTypeIn(metric)| metric.word()),
    };
    let wanted = page(query.limit, query.offset);
    let listed = servers_listed(&ask.state, &ask.subject.caller, filter.server_id).await?;
    let found = ask.state.store.list_thresholds(&listed, filter, wanted).await?;
    Ok(Listed { items: found.items.into_iter().map(ThresholdOut::from).collect(), total: found.total })
}

/// Add a threshold
///
/// For one server, for all servers with a tag, or for all your servers.
#[api_v2_operation(tags(Alerts), operation_id = "create_threshold")]
pub async fn create(
    ask: Checked<SignedIn, NoQuery, extract::Json<ThresholdIn>>,
) -> Result<CreatedJson<ThresholdOut>, ApiError> {
    let SignedIn { caller, actor } = ask.subject;
    let extract::Json(input) = ask.body;
    let terms = input.terms().map_err(in_body)?;
    let owner_id = owner_of(&ask.state, &caller, &terms.reach, Action::Manage).await?;
    run_detached(async move {
        let change = Change::of_rules(owner_id, &terms.reach);
        let created = ask.state.store.create_threshold(owner_id, terms, actor).await;
        // Even after an error: a change may be stored although its answer was lost.
        effects::commit(&ask.state, change).await;
        Ok(CreatedJson(created?.into()))
    })
    .await
}

/// Get a threshold
#[api_v2_operation(tags(Alerts), operation_id = "read_threshold")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<ThresholdOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    Ok(Json(find(&ask.state, &caller, path.id.0, Action::See).await?.into()))
}

/// Change a threshold
///
/// Changes the given fields; null removes `clear_value`, `target`, `states` and `series`. A change of when the
/// threshold fires resolves its open alerts.
#[api_v2_operation(tags(Alerts), operation_id = "update_threshold")]
pub async fn update(
    ask: Checked<CallerAt<IdPath>, NoQuery, extract::Json<ThresholdPatchIn>>,
) -> Result<Json<ThresholdOut>, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let (state, extract::Json(patch)) = (ask.state, ask.body);
    run_detached(async move {
        for _ in 0..TRIES {
            let found = find(&state, &caller, path.id.0, Action::Manage).await?;
            let terms = patch.clone().applied_to(found.clone().into()).map_err(in_body)?;
            let owner_id = found.owner_id;
            expect_same_owner(&state, &caller, (owner_id, &terms.reach), Action::Manage).await?;
            let before = Change::of_rules(owner_id, &reach_of(&found));
            let after = Change::of_rules(owner_id, &terms.reach);
            let changed = state.store.change_threshold(&found, terms, actor.clone()).await;
            if after != before {
                effects::commit(&state, before).await;
            }
            effects::commit(&state, after).await;
            if let Some(changed) = changed? {
                return Ok(Json(changed.into()));
            }
        }
        Err(ApiError::code(ErrorCode::Busy))
    })
    .await
}

/// Delete a threshold
///
/// Resolves its open alerts.
#[api_v2_operation(tags(Alerts), operation_id = "delete_threshold")]
pub async fn delete(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let threshold = find(&ask.state, &caller, path.id.0, Action::Manage).await?;
    let existed = run_detached(async move {
        let deleted = ask.state.store.delete_threshold(&threshold, actor).await;
        effects::commit(&ask.state, Change::of_rules(threshold.owner_id, &reach_of(&threshold))).await;
        Ok(deleted?)
    });
    if existed.await? { Ok(Done("Threshold deleted")) } else { Err(not_found()) }
}

async fn find(state: &State, caller: &Caller, id: Uuid, action: Action) -> Result<Threshold, ApiError> {
    let threshold = state.store.find_threshold(id).await?.ok_or_else(not_found)?;
    expect_allowed(state, caller, (threshold.owner_id, &reach_of(&threshold)), action, not_found).await?;
    Ok(threshold)
}

fn reach_of(threshold: &Threshold) -> Reach {
    Reach { server_id: threshold.server_id, tag: threshold.tag.clone() }
}

fn not_found() -> ApiError {
    ApiError::not_found("Threshold not found")
}

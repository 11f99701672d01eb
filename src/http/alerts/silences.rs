//! `/alerts/silences`: periods without notifications.

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::reach::{expect_allowed, expect_same_owner, owner_of, servers_listed};
use super::silence_in::{SilenceIn, SilencePatchIn, WEEKDAYS};
use super::{TRIES, in_body};
use crate::alerts::silence::holds_until;
use crate::auth::access::Action;
use crate::change::Change;
use crate::effects;
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::described;
use crate::http::extract::param::{Id as IdParam, MAX_OFFSET, Whole, page};
use crate::http::extract::{self, CallerAt, Checked, IdPath, NoQuery, SignedIn};
use crate::http::field_out::{Id, TimeOut};
use crate::http::reply::{Done, Listed};
use crate::http::task::run_detached;
use crate::state::State;
use crate::store::{Caller, Reach, Silence, SilenceTerms, WeeklySchedule};

/// A period in which alerts are recorded but not sent.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SilenceOut {
    id: Id,
    /// Null if it is for a tag or for all servers.
    server_id: Option<Id>,
    tag: Option<String>,
    all: bool,
    reason: String,
    starts_at: Option<TimeOut>,
    ends_at: Option<TimeOut>,
    /// Null for a one-time silence.
    schedule: Option<ScheduleOut>,
    /// Whether it is active now.
    active: bool,
    /// When the current period ends; for a silence with periods that follow each other without a gap, a time until
    /// which it is active at least.
    active_until: Option<TimeOut>,
    /// The user who created it, with the name at that time.
    created_by: String,
    created_at: TimeOut,
    updated_at: TimeOut,
}

/// When a silence begins each week, and how long it lasts.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ScheduleOut {
    weekdays: WeekdaysOut,
    start: String,
    duration_minutes: i32,
    time_zone: String,
}

/// Days of the week.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct WeekdaysOut(Vec<&'static str>);

described!(WeekdaysOut, json!({ "type": "array", "items": { "type": "string", "enum": WEEKDAYS } }));

impl From<Silence> for SilenceOut {
    fn from(row: Silence) -> Self {
        let active_until = holds_until(&row, Timestamp::now());
        let (id, created_at, updated_at) = (row.id, row.created_at, row.updated_at);
        let created_by = row.created_by.clone();
        let terms = SilenceTerms::from(row);
        let Reach { server_id, tag } = terms.reach;
        Self {
            id: Id(id),
            all: server_id.is_none() && tag.is_none(),
            server_id: server_id.map(Id),
            tag,
            reason: terms.reason,
            starts_at: terms.starts_at.map(TimeOut),
            ends_at: terms.ends_at.map(TimeOut),
            schedule: terms.schedule.map(ScheduleOut::from),
            active: active_until.is_some(),
            active_until: active_until.map(TimeOut),
            created_by,
            created_at: TimeOut(created_at.into()),
            updated_at: TimeOut(updated_at.into()),
        }
    }
}

impl From<WeeklySchedule> for ScheduleOut {
    fn from(schedule: WeeklySchedule) -> Self {
        let index = |day: &str| day.parse::<usize>().ok()?.checked_sub(1);
        let days = schedule.weekdays.split(',').filter_map(|day| WEEKDAYS.get(index(day)?).copied());
        Self {
            weekdays: WeekdaysOut(days.collect()),
            start: format!("{:02}:{:02}", schedule.start_minute / 60, schedule.start_minute % 60),
            duration_minutes: schedule.duration_minutes,
            time_zone: schedule.time_zone,
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct SilencesQuery {
    /// Only those that name this server, not those for its tags or for all servers.
    #[deserr(default)]
    server_id: Option<IdParam>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// List your silences
///
/// Newest first, with those that name a server that is shared with you.
#[api_v2_operation(tags(Alerts), operation_id = "list_silences")]
pub async fn list(ask: Checked<SignedIn, SilencesQuery>) -> Result<Listed<SilenceOut>, ApiError> {
    let (server_id, wanted) = (ask.query.server_id.map(|IdParam(id)| id), page(ask.query.limit, ask.query.offset));
    let listed = servers_listed(&ask.state, &ask.subject.caller, server_id).await?;
    let found = ask.state.store.list_silences(&listed, server_id, wanted).await?;
    Ok(Listed { items: found.items.into_iter().map(SilenceOut::from).collect(), total: found.total })
}

/// Add a silence
///
/// For one server, for all servers with a tag, or for all your servers; once, or every week. Alerts are recorded but
/// not sent; those still active when the silence ends are sent then.
#[api_v2_operation(tags(Alerts), operation_id = "create_silence")]
pub async fn create(
    ask: Checked<SignedIn, NoQuery, extract::Json<SilenceIn>>,
) -> Result<CreatedJson<SilenceOut>, ApiError> {
    let SignedIn { caller, actor } = ask.subject;
    let extract::Json(input) = ask.body;
    let terms = input.terms(ask.state.clock.now()).map_err(in_body)?;
    let owner_id = owner_of(&ask.state, &caller, &terms.reach, Action::Respond).await?;
    let created = ask.state.store.create_silence(owner_id, terms, actor).await?;
    Ok(CreatedJson(created.into()))
}

/// Get a silence
#[api_v2_operation(tags(Alerts), operation_id = "read_silence")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<SilenceOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    Ok(Json(find(&ask.state, &caller, path.id.0, Action::See).await?.into()))
}

/// Change a silence
///
/// Changes the given fields. `schedule: null` makes it a one-time silence; null removes the start or end of a weekly
/// one.
#[api_v2_operation(tags(Alerts), operation_id = "update_silence")]
pub async fn update(
    ask: Checked<CallerAt<IdPath>, NoQuery, extract::Json<SilencePatchIn>>,
) -> Result<Json<SilenceOut>, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let (state, extract::Json(patch)) = (ask.state, ask.body);
    run_detached(async move {
        for _ in 0..TRIES {
            let found = find(&state, &caller, path.id.0, Action::Respond).await?;
            let now = state.clock.now();
            let terms = patch.clone().applied_to(found.clone().into(), now).map_err(in_body)?;
            expect_same_owner(&state, &caller, (found.owner_id, &terms.reach), Action::Respond).await?;
            if let Some(changed) = state.store.change_silence(&found, terms, actor.clone(), now).await? {
                effects::commit(&state, Change::NotificationsChanged).await;
                return Ok(Json(changed.into()));
            }
        }
        Err(ApiError::code(ErrorCode::Busy))
    })
    .await
}

/// Delete a silence
///
/// The silence ends immediately.
#[api_v2_operation(tags(Alerts), operation_id = "delete_silence")]
pub async fn delete(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let silence = find(&ask.state, &caller, path.id.0, Action::Respond).await?;
    let existed = run_detached(async move {
        let deleted = ask.state.store.delete_silence(&silence, actor, ask.state.clock.now()).await?;
        effects::commit(&ask.state, Change::NotificationsChanged).await;
        Ok(deleted)
    });
    if existed.await? { Ok(Done("Silence deleted")) } else { Err(not_found()) }
}

async fn find(state: &State, caller: &Caller, id: Uuid, action: Action) -> Result<Silence, ApiError> {
    let silence = state.store.find_silence(id).await?.ok_or_else(not_found)?;
    let reach = Reach { server_id: silence.server_id, tag: silence.tag.clone() };
    expect_allowed(state, caller, (silence.owner_id, &reach), action, not_found).await?;
    Ok(silence)
}

fn not_found() -> ApiError {
    ApiError::not_found("Silence not found")
}

//! `/schedules`: commands that recur.

mod out;

use actix_web::web::Json;
use chrono_tz::Tz;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::web::{Resource, delete as remove, get, post, put};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signed;
use signalbox_signing::repeat::MAX_CRON_CHARACTERS;
use signalbox_signing::{Asked, Recurrence, Repeat, RepeatError, form};
use uuid::Uuid;

use super::alerts::words::SeverityIn;
use super::commands::order::{
    Concurrency, TimeoutSeconds, approvals_for, concurrency, readable, refused, runnable, seconds,
};
use super::error::ApiError;
use super::extract::fault::{Faults, Part};
use super::extract::field::{
    At, Clearable, FILLED_LINE, Name, Number, References, ShellCommand, Tag, described, line, string, text_field,
};
use super::extract::param::PageQuery;
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::path::at;
use super::reply::{Done, Listed, fault_of};
use super::selection::Selection;
use super::signed_in::SignedOrder;
use super::task::run_detached;
use crate::alert_words::Severity;
use crate::audit::{Actor, Entry, action};
use crate::auth::access::ServerAccess;
use crate::commands::schedules::{named, next_after};
use crate::state::State;
use crate::store::{Caller, Schedule};
use out::{ScheduleOut, ScheduleSummaryOut};

text_field!(
    /// When it runs, as five fields of cron: minute, hour, day of month, month, day of week.
    CronText(String),
    |text, location| line(text, 1, MAX_CRON_CHARACTERS, location),
    json!({ "type": "string", "minLength": 9, "maxLength": MAX_CRON_CHARACTERS, "pattern": FILLED_LINE, "example": "0 3 * * *" })
);

text_field!(
    /// The time zone of the cron expression, a name of the IANA database.
    ZoneText(String),
    |text, location| line(text, 1, 64, location),
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "pattern": FILLED_LINE, "example": "Europe/Berlin" })
);

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ScheduleIn {
    name: Name,
    /// The servers to run the command on, in addition to those of `tag`.
    #[deserr(default)]
    server_ids: Option<References>,
    /// All servers that have this tag at the time of a run, and on which you may run commands.
    #[deserr(default)]
    tag: Option<Tag>,
    /// The command, which runs in `/bin/sh -c`.
    command: ShellCommand,
    /// Seconds after which the command and all its child processes are ended. Defaults to 60.
    #[deserr(default)]
    timeout_seconds: Option<TimeoutSeconds>,
    /// How many servers run the command at the same time. Defaults to 50.
    #[deserr(default)]
    concurrency: Option<Concurrency>,
    /// Whether a failure stops the servers that still wait from running the command. Defaults to false.
    #[deserr(default)]
    stop_on_failure: Option<bool>,
    cron: CronText,
    time_zone: ZoneText,
    /// False pauses it. Defaults to true.
    #[deserr(default)]
    enabled: Option<bool>,
    /// How serious the alerts of runs that fail or are missed are. Defaults to `warning`.
    #[deserr(default)]
    severity: Option<SeverityIn>,
    /// It does not run from then on. Defaults to the end of what is signed, or to no end.
    #[deserr(default)]
    until: Option<At>,
    /// What operators signed for all its runs, with `repeat` in the payload, for servers that ask for signatures. It needs the time
    /// zone `UTC`.
    #[deserr(default)]
    signed: Option<SignedOrder>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct SchedulePatchIn {
    #[deserr(default)]
    name: Option<Name>,
    #[deserr(default)]
    server_ids: Clearable<References>,
    #[deserr(default)]
    tag: Clearable<Tag>,
    #[deserr(default)]
    command: Option<ShellCommand>,
    #[deserr(default)]
    timeout_seconds: Option<TimeoutSeconds>,
    #[deserr(default)]
    concurrency: Option<Concurrency>,
    #[deserr(default)]
    stop_on_failure: Option<bool>,
    #[deserr(default)]
    cron: Option<CronText>,
    #[deserr(default)]
    time_zone: Option<ZoneText>,
    /// False pauses it. What was due while it was paused is not counted as missed.
    #[deserr(default)]
    enabled: Option<bool>,
    #[deserr(default)]
    severity: Option<SeverityIn>,
    #[deserr(default)]
    until: Clearable<At>,
    /// Must be given again if the change is of anything that it says.
    #[deserr(default)]
    signed: Clearable<SignedOrder>,
}

/// List your schedules
///
/// Sorted by name, without their runs.
#[api_v2_operation(tags(Schedules), operation_id = "list_schedules")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<ScheduleSummaryOut>, ApiError> {
    let page = ask.state.store.list_schedules(ask.subject.caller.user_id, ask.query.into()).await?;
    Ok(Listed { items: page.items.into_iter().map(ScheduleSummaryOut::from).collect(), total: page.total })
}

/// Create a schedule
///
/// Runs a command whenever its cron expression is due. Each run is a batch, for which your rights are asked again. A run that fails
/// or is missed opens an alert on each of its servers, of which everybody who may see the server is notified; the next success
/// there ends it. An account has at most 200 schedules.
#[api_v2_operation(tags(Schedules), operation_id = "create_schedule")]
pub async fn create(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<ScheduleIn>>,
) -> Result<CreatedJson<ScheduleOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let now = ask.state.clock.now();
    let mut row = Schedule {
        id: Uuid::now_v7(),
        owner_id: caller.user_id,
        username: actor.username.to_string(),
        name: input.name.0,
        command: input.command.0,
        server_ids: texts(input.server_ids.map(|References(ids)| ids).unwrap_or_default()),
        tag: input.tag.map(|Tag(tag)| tag),
        timeout_seconds: i32::try_from(seconds(input.timeout_seconds)).unwrap_or(i32::MAX),
        concurrency: i32::from(concurrency(input.concurrency)),
        stop_on_failure: input.stop_on_failure.unwrap_or_default(),
        signed: input.signed.and_then(stored),
        cron: input.cron.0,
        time_zone: input.time_zone.0,
        is_enabled: input.enabled.unwrap_or(true),
        severity: input.severity.map_or(Severity::Warning, |SeverityIn(it)| it).word().to_owned(),
        until_at: input.until.map(|At(at)| at.into()),
        next_at: None,
        missed: 0,
        missed_at: None,
        created_at: now.into(),
        updated_at: now.into(),
    };
    complete(&ask.state, &caller, &mut row, None, now).await?;
    run_detached(async move {
        let entry = entry(action::SCHEDULE_CREATE, &row, actor);
        ask.state.store.create_schedule(&row, entry).await?;
        Ok(CreatedJson(ScheduleOut::new(row, Vec::new())))
    })
    .await
}

/// Get a schedule
///
/// With its last runs.
#[api_v2_operation(tags(Schedules), operation_id = "read_schedule")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<ScheduleOut>, ApiError> {
    let row = find(&ask.state, &ask.subject.caller, ask.subject.path.id.0).await?;
    let runs = ask.state.store.schedule_runs(row.id).await?;
    Ok(Json(ScheduleOut::new(row, runs)))
}

/// Change a schedule
///
/// Changes the given fields; null clears `until`, `tag`, `server_ids` and `signed`. The next run is the first one after a change of `cron`, `time_zone`, `until` or `enabled`.
#[api_v2_operation(tags(Schedules), operation_id = "update_schedule")]
pub async fn update(
    ask: Checked<Recent<CallerAt<IdPath>>, NoQuery, extract::Json<SchedulePatchIn>>,
) -> Result<Json<ScheduleOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    run_detached(async move {
        let state = &ask.state;
        let before = find(state, &caller, path.id.0).await?;
        let now = state.clock.now();
        let mut after = changed(&before, input, &actor, now);
        if !runs_nothing_new(&before, &after) {
            complete(state, &caller, &mut after, Some(&before), now).await?;
        }
        let entry = entry(action::SCHEDULE_UPDATE, &after, actor);
        if !state.store.update_schedule(&before, &after, entry).await? {
            return Err(refused("The schedule has changed or run in the meantime: try again"));
        }
        let runs = state.store.schedule_runs(after.id).await?;
        Ok(Json(ScheduleOut::new(after, runs)))
    })
    .await
}

/// Delete a schedule
///
/// With the list of its runs. What runs now continues, and the batches stay.
#[api_v2_operation(tags(Schedules), operation_id = "delete_schedule")]
pub async fn delete(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    run_detached(async move {
        let row = find(&ask.state, &caller, path.id.0).await?;
        let entry = entry(action::SCHEDULE_DELETE, &row, actor);
        if ask.state.store.delete_schedule(caller.user_id, row.id, entry).await? {
            Ok(Done("Schedule deleted"))
        } else {
            Err(not_found())
        }
    })
    .await
}

/// The schedule after a change, due when it was before.
fn changed(before: &Schedule, input: SchedulePatchIn, actor: &Actor, now: Timestamp) -> Schedule {
    let number = |given: Option<u64>, before: i32| given.map_or(before, |it| it.try_into().unwrap_or(i32::MAX));
    let servers = input.server_ids.change(|References(ids)| ids);
    Schedule {
        username: actor.username.to_string(),
        name: input.name.map_or_else(|| before.name.clone(), |Name(name)| name),
        command: input.command.map_or_else(|| before.command.clone(), |ShellCommand(command)| command),
        server_ids: servers.map_or_else(|| before.server_ids.clone(), texts),
        tag: input.tag.change(|Tag(tag)| Some(tag)).unwrap_or_else(|| before.tag.clone()),
        timeout_seconds: number(input.timeout_seconds.map(|Number(it)| it), before.timeout_seconds),
        concurrency: number(input.concurrency.map(|Number(it)| it), before.concurrency),
        stop_on_failure: input.stop_on_failure.unwrap_or(before.stop_on_failure),
        signed: input.signed.change(stored).unwrap_or_else(|| before.signed.clone()),
        cron: input.cron.map_or_else(|| before.cron.clone(), |CronText(cron)| cron),
        time_zone: input.time_zone.map_or_else(|| before.time_zone.clone(), |ZoneText(zone)| zone),
        is_enabled: input.enabled.unwrap_or(before.is_enabled),
        severity: input.severity.map_or_else(|| before.severity.clone(), |SeverityIn(it)| it.word().to_owned()),
        until_at: input.until.change(|At(at)| Some(at.into())).unwrap_or(before.until_at),
        // Each change has another time, so that a run of what was read before it does not start.
        updated_at: now.max(Timestamp::from(before.updated_at).plus_millis(1)).into(),
        ..before.clone()
    }
}

/// Whether a change makes nothing run that did not run before: it is a pause, or of the name or the severity alone. It needs no
/// check: servers that are gone and rights that have ended must keep nobody from pausing what runs on the others.
fn runs_nothing_new(before: &Schedule, after: &Schedule) -> bool {
    let alike = Schedule {
        username: before.username.clone(),
        name: before.name.clone(),
        is_enabled: before.is_enabled,
        severity: before.severity.clone(),
        updated_at: before.updated_at,
        ..after.clone()
    };
    alike == *before && (before.is_enabled || !after.is_enabled)
}

/// Whether a change is of other things than when the schedule is due.
fn is_due_as_before(before: &Schedule, after: &Schedule) -> bool {
    before.cron == after.cron
        && before.time_zone == after.time_zone
        && before.until_at == after.until_at
        && before.is_enabled == after.is_enabled
}

/// Checks a schedule with what is signed for it, and fills in when it is due.
async fn complete(
    state: &State,
    caller: &Caller,
    row: &mut Schedule,
    before: Option<&Schedule>,
    now: Timestamp,
) -> Result<(), ApiError> {
    let recurrence = Recurrence::parse(&row.cron, zone_of(&row.time_zone)?).map_err(unreadable)?;
    let selection = Selection { named: named(row), tag: row.tag.clone(), is_all: false };
    let servers = runnable(state, caller, selection).await?;
    let signed: Option<Signed> = row.signed.as_deref().and_then(|text| serde_json::from_str(text).ok());
    if let Some(signed) = &signed {
        let end = expect_signed(state, row, signed, &servers, now).await?;
        let until = row.until_at.map_or(end, |until| end.min(until.into()));
        row.until_at = Some(until.into());
    } else {
        row.signed = None;
    }
    // What is due already, and has not begun to run, stays due.
    let kept = before.filter(|before| is_due_as_before(before, row)).and_then(|before| before.next_at);
    row.next_at = kept.or_else(|| next_after(&recurrence, now, row.until_at.map(Timestamp::from)).map(Into::into));
    if row.next_at.is_none() && row.is_enabled {
        return Err(refused("The schedule would never run: set a later end"));
    }
    Ok(())
}

/// Refuses what is signed if no agent would run it. Returns when it ends.
async fn expect_signed(
    state: &State,
    row: &Schedule,
    signed: &Signed,
    servers: &[ServerAccess],
    now: Timestamp,
) -> Result<Timestamp, ApiError> {
    let timeout_seconds = u32::try_from(row.timeout_seconds).unwrap_or_default();
    let asked = Asked::Command { command: &row.command, stdin: None, timeout_seconds };
    let (payload, bytes) = readable(signed, asked, now)?;
    let repeat = Repeat { cron: row.cron.clone(), time_zone: row.time_zone.clone() };
    if payload.repeat.as_ref() != Some(&repeat) {
        return Err(refused("the signed payload needs `repeat` with the same cron and time_zone"));
    }
    for signature in &signed.signatures {
        form::author(signature, &bytes).map_err(|error| refused(error.to_string()))?;
    }
    for server in servers {
        let Some((name, approvals)) = approvals_for(state, &payload, server).await? else { continue };
        if signed.signatures.len() < usize::try_from(approvals).unwrap_or(usize::MAX) {
            return Err(refused(format!("`{name}` asks for {approvals} signatures: gather them first")));
        }
    }
    Ok(payload.expires_at)
}

async fn find(state: &State, caller: &Caller, id: Uuid) -> Result<Schedule, ApiError> {
    state.store.find_schedule(caller.user_id, id).await?.ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::not_found("Schedule not found")
}

fn texts(ids: Vec<Uuid>) -> String {
    json!(ids).to_string()
}

/// What is signed, as a row keeps it.
fn stored(signed: SignedOrder) -> Option<String> {
    serde_json::to_string(&Signed::from(signed)).ok()
}

fn zone_of(name: &str) -> Result<Tz, ApiError> {
    let msg = "value is not a time zone of the IANA database, such as Europe/Berlin";
    name.parse().map_err(|_| ApiError::Invalid(fault_of("time_zone", "value_error.time_zone", msg).within(Part::Body)))
}

fn unreadable(error: RepeatError) -> ApiError {
    ApiError::Invalid(fault_of("cron", "value_error.cron", &error.to_string()).within(Part::Body))
}

fn entry(action: &'static str, row: &Schedule, actor: Actor) -> Entry {
    let detail = json!({
        "name": row.name, "command": row.command, "cron": row.cron, "time_zone": row.time_zone,
        "enabled": row.is_enabled, "severity": row.severity, "until": row.until_at.map(Timestamp::from), "signed": row.signed.is_some(),
    });
    Entry::new(action, row.owner_id, actor).target(row.id).detail(detail)
}

/// The routes.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/schedules").route(get().to(list)).route(post().to(create)),
        at("/schedules/{id}").route(get().to(read)).route(put().to(update)).route(remove().to(delete)),
    ]
}

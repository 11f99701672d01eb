//! Schedules: commands that recur, and their runs.
//!
//! Each time at which a schedule is due is a row of `schedule_runs`, and moves `next_at` on, in the transaction that stores the
//! batch. Both have a condition, so that of several instances one starts it, and none starts it again.

use entity::{Millis, command, command_batch, schedule, schedule_run};
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, SelectStatement};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, FromQueryResult, IntoActiveModel,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::advisory_lock::lock_owner;
use super::audit_log::{record_all_in, record_in};
use super::schedule_alerts::{ScheduleAlerts, change, concerned};
use super::server_events::{NewServerEvent, hold, insert};
use super::{Alert, Page, PageRequest, Schedule, ScheduleRun, Store, StoreError};
use crate::audit::Entry;

/// The schedules of one account: more than anybody looks through.
pub const MAX_SCHEDULES: u64 = 200;

/// The runs that a schedule keeps: a day of one each quarter of an hour.
pub const KEPT_RUNS: u64 = 100;

/// How many are started, or noted as ended, in one look.
const AT_ONCE: u64 = 100;

/// A time at which a schedule was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// The schedule.
    pub schedule_id: Uuid,
    /// When its row was last edited. Each edit has another time.
    pub updated_at: Timestamp,
    /// What its row says is due next.
    pub expected: Timestamp,
    /// The time that is due now.
    pub due_at: Timestamp,
    /// When it is due after that.
    pub next_at: Option<Timestamp>,
    /// How often it was due before and did not run, and when that was last.
    pub missed: u32,
    /// When that was last.
    pub missed_at: Option<Timestamp>,
    /// The present time.
    pub now: Timestamp,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRun {
    /// The schedule.
    pub schedule: Schedule,
    /// When it was due.
    pub due_at: Timestamp,
    /// The batch.
    pub batch_id: Uuid,
    /// The servers on which it succeeded.
    pub succeeded: Vec<Uuid>,
    /// How it ended on the others.
    pub failed: Vec<FailedOn>,
}

/// A server on which a run did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
pub struct FailedOn {
    /// The server.
    pub server_id: Uuid,
    /// The status of the command.
    pub status: String,
    /// Its exit code, if it ended.
    pub exit_code: Option<i32>,
    /// Why it did not run.
    pub error_code: Option<String>,
}

impl Store {
    /// Stores a schedule.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooManySchedules`] when the account has [`MAX_SCHEDULES`].
    pub async fn create_schedule(&self, new: &Schedule, entry: Entry) -> Result<(), StoreError> {
        let row = new.clone().into_active_model().reset_all();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock_owner(&transaction, new.owner_id).await?;
            let owned = schedule::Entity::find().filter(schedule::Column::OwnerId.eq(new.owner_id));
            if owned.count(&transaction).await? >= MAX_SCHEDULES {
                return Err(StoreError::TooManySchedules);
            }
            schedule::Entity::insert(row.clone()).exec_without_returning(&transaction).await?;
            record_in(&transaction, entry.clone()).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// Lists the schedules of an owner, by name.
    pub async fn list_schedules(&self, owner_id: Uuid, page: PageRequest) -> Result<Page<Schedule>, StoreError> {
        let query = schedule::Entity::find().filter(schedule::Column::OwnerId.eq(owner_id));
        let total = query.clone().count(&self.read).await?;
        let query = query.order_by_asc(schedule::Column::Name).order_by_asc(schedule::Column::Id);
        Ok(Page { items: query.limit(page.limit).offset(page.offset).all(&self.read).await?, total })
    }

    /// Finds a schedule of an owner.
    pub async fn find_schedule(&self, owner_id: Uuid, id: Uuid) -> Result<Option<Schedule>, StoreError> {
        Ok(schedule::Entity::find().filter(of_owner(owner_id, id)).one(&self.read).await?)
    }

    /// The last runs of a schedule, newest first.
    pub async fn schedule_runs(&self, schedule_id: Uuid) -> Result<Vec<ScheduleRun>, StoreError> {
        let runs = schedule_run::Entity::find()
            .filter(schedule_run::Column::ScheduleId.eq(schedule_id))
            .order_by_desc(schedule_run::Column::DueAt)
            .limit(KEPT_RUNS);
        Ok(runs.all(&self.read).await?)
    }

    /// Replaces a schedule that has not changed since it was read. Returns whether it was still the same.
    pub async fn update_schedule(&self, before: &Schedule, after: &Schedule, entry: Entry) -> Result<bool, StoreError> {
        let row = after.clone().into_active_model().reset_all();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let same = schedule::Entity::update_many()
                .set(row.clone())
                .filter(of_owner(before.owner_id, before.id))
                .filter(schedule::Column::UpdatedAt.eq(before.updated_at))
                .filter(is_next(before.next_at))
                .exec(&transaction)
                .await?;
            if same.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Deletes a schedule of an owner with its runs. Returns whether it existed.
    pub async fn delete_schedule(&self, owner_id: Uuid, id: Uuid, entry: Entry) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let deleted = schedule::Entity::delete_many().filter(of_owner(owner_id, id)).exec(&transaction).await?;
            if deleted.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Some of the schedules that are due: first those since `recent`, which can still run, then those that were missed before.
    pub async fn due_schedules(&self, now: Timestamp, recent: Timestamp) -> Result<Vec<Schedule>, StoreError> {
        let due = schedule::Entity::find()
            .filter(schedule::Column::IsEnabled.eq(true))
            .filter(schedule::Column::NextAt.lte(Millis::from(now)))
            .order_by_asc(schedule::Column::NextAt.lt(Millis::from(recent)))
            .order_by_asc(schedule::Column::NextAt)
            .limit(AT_ONCE);
        Ok(due.all(&self.read).await?)
    }

    /// Whether a run of the schedule has not ended, noted or not.
    pub async fn is_schedule_running(&self, schedule_id: Uuid) -> Result<bool, StoreError> {
        let open = schedule_run::Entity::find()
            .filter(schedule_run::Column::ScheduleId.eq(schedule_id))
            .filter(schedule_run::Column::Outcome.is_null())
            .filter(schedule_run::Column::BatchId.in_subquery(going()));
        Ok(open.count(&self.read).await? > 0)
    }

    /// Notes that a schedule was due and does not run: with an outcome for the time that is due now, or only because earlier
    /// ones were missed. Returns the alerts that it opened: none if somebody else has noted it.
    pub async fn pass_schedule(
        &self,
        occurrence: Occurrence,
        outcome: Option<&'static str>,
        entries: Vec<Entry>,
        alerts: ScheduleAlerts,
    ) -> Result<Vec<Alert>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !advance(&transaction, occurrence).await? {
                return Ok(Vec::new());
            }
            if let Some(outcome) = outcome {
                note_run(&transaction, occurrence, None, Some(outcome)).await?;
            }
            let held = hold(&transaction, concerned(&transaction, &alerts).await?).await?;
            let changed = change(&transaction, &alerts, &held).await?;
            record_all_in(&transaction, entries.clone()).await?;
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }

    /// Some of the runs whose batches have ended, and whose outcome is not noted yet.
    pub async fn ended_runs(&self) -> Result<Vec<EndedRun>, StoreError> {
        let open = schedule_run::Entity::find()
            .filter(schedule_run::Column::Outcome.is_null())
            .filter(schedule_run::Column::BatchId.not_in_subquery(going()))
            .order_by_asc(schedule_run::Column::DueAt)
            .limit(AT_ONCE);
        let mut ended = Vec::new();
        for run in open.all(&self.read).await? {
            let found = schedule::Entity::find_by_id(run.schedule_id).one(&self.read).await?;
            let (Some(schedule), Some(batch_id)) = (found, run.batch_id) else { continue };
            let rows: Vec<FailedOn> = command::Entity::find()
                .select_only()
                .columns([command::Column::ServerId, command::Column::Status])
                .columns([command::Column::ExitCode, command::Column::ErrorCode])
                .filter(command::Column::BatchId.eq(batch_id))
                .into_model()
                .all(&self.read)
                .await?;
            let (succeeded, failed): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.status == "succeeded");
            let succeeded = succeeded.into_iter().map(|row| row.server_id).collect();
            ended.push(EndedRun { schedule, due_at: run.due_at.into(), batch_id, succeeded, failed });
        }
        Ok(ended)
    }

    /// Notes how a run ended, with events of servers, and opens and ends its alerts. Returns the alerts that it changed: none if
    /// somebody else has noted it.
    pub async fn end_run(
        &self,
        run: &EndedRun,
        outcome: &'static str,
        entries: Vec<Entry>,
        events: Vec<NewServerEvent>,
        alerts: ScheduleAlerts,
    ) -> Result<Vec<Alert>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let ended = schedule_run::Entity::update_many()
                .col_expr(schedule_run::Column::Outcome, Expr::value(outcome))
                .filter(schedule_run::Column::ScheduleId.eq(run.schedule.id))
                .filter(schedule_run::Column::DueAt.eq(Millis::from(run.due_at)))
                .filter(schedule_run::Column::Outcome.is_null())
                .exec(&transaction)
                .await?;
            if ended.rows_affected == 0 {
                return Ok(Vec::new());
            }
            let servers = events.iter().map(|event| event.server_id).chain(concerned(&transaction, &alerts).await?);
            let held = hold(&transaction, servers).await?;
            let events = events.iter().filter(|event| held.contains(&event.server_id)).cloned().collect();
            insert(&transaction, events).await?;
            let changed = change(&transaction, &alerts, &held).await?;
            record_all_in(&transaction, entries.clone()).await?;
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }
}

/// Starts what is due, unless somebody else has. Returns whether nobody had.
pub(super) async fn begin_run(
    connection: &impl ConnectionTrait,
    occurrence: Occurrence,
    batch_id: Uuid,
) -> Result<bool, StoreError> {
    Ok(advance(connection, occurrence).await? && note_run(connection, occurrence, Some(batch_id), None).await?)
}

/// Moves a schedule on to the next time at which it is due, if it is as it was read.
async fn advance(connection: &impl ConnectionTrait, occurrence: Occurrence) -> Result<bool, StoreError> {
    let Occurrence { schedule_id, updated_at, expected, next_at, missed, missed_at, .. } = occurrence;
    let next_at = next_at.map(Millis::from);
    let mut update = schedule::Entity::update_many()
        .col_expr(schedule::Column::NextAt, Expr::value(next_at.map(|at| Timestamp::from(at).as_millis())));
    if let Some(missed_at) = missed_at {
        let sum = Expr::col(schedule::Column::Missed).add(i64::from(missed));
        update = update.col_expr(schedule::Column::Missed, sum);
        update = update.col_expr(schedule::Column::MissedAt, Millis::from(missed_at).into());
    }
    let advanced = update
        .filter(schedule::Column::Id.eq(schedule_id))
        .filter(schedule::Column::IsEnabled.eq(true))
        .filter(schedule::Column::UpdatedAt.eq(Millis::from(updated_at)))
        .filter(schedule::Column::NextAt.eq(Millis::from(expected)))
        .exec(connection)
        .await?;
    Ok(advanced.rows_affected > 0)
}

/// Notes a run, and forgets the oldest. Returns whether there was none at this time.
async fn note_run(
    connection: &impl ConnectionTrait,
    occurrence: Occurrence,
    batch_id: Option<Uuid>,
    outcome: Option<&str>,
) -> Result<bool, StoreError> {
    let Occurrence { schedule_id, due_at, now, .. } = occurrence;
    let outcome = outcome.map(str::to_owned);
    let run = ScheduleRun { schedule_id, due_at: due_at.into(), batch_id, outcome, started_at: now.into() };
    let key = [schedule_run::Column::ScheduleId, schedule_run::Column::DueAt];
    let noted = schedule_run::Entity::insert(run.into_active_model().reset_all())
        .on_conflict(OnConflict::columns(key).do_nothing().to_owned())
        .exec_without_returning(connection)
        .await?;
    if noted == 0 {
        return Ok(false);
    }
    let first_removed: Option<Millis> = schedule_run::Entity::find()
        .select_only()
        .column(schedule_run::Column::DueAt)
        .filter(schedule_run::Column::ScheduleId.eq(schedule_id))
        .order_by_desc(schedule_run::Column::DueAt)
        .offset(KEPT_RUNS)
        .limit(1)
        .into_tuple()
        .one(connection)
        .await?;
    if let Some(first_removed) = first_removed {
        schedule_run::Entity::delete_many()
            .filter(schedule_run::Column::ScheduleId.eq(schedule_id))
            .filter(schedule_run::Column::DueAt.lte(first_removed))
            .exec(connection)
            .await?;
    }
    Ok(true)
}

/// The batches that have not ended.
fn going() -> SelectStatement {
    command_batch::Entity::find()
        .select_only()
        .column(command_batch::Column::Id)
        .filter(command_batch::Column::FinishedAt.is_null())
        .into_query()
}

fn of_owner(owner_id: Uuid, id: Uuid) -> Condition {
    Condition::all().add(schedule::Column::Id.eq(id)).add(schedule::Column::OwnerId.eq(owner_id))
}

fn is_next(next_at: Option<Millis>) -> Condition {
    Condition::all().add(match next_at {
        Some(at) => schedule::Column::NextAt.eq(at),
        None => schedule::Column::NextAt.is_null(),
    })
}

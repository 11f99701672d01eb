use entity::{Millis, alert, silence};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect,
};
use serde::Serialize;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::{differences, record_in};
use super::failure::no_server_of;
use super::thresholds::entry;
use super::{Page, PageRequest, Quota, Reach, Silence, Store, StoreError, Visibility};
use crate::audit::{Actor, action};

/// What a user chooses for a silence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SilenceTerms {
    /// The servers that it applies to.
    #[serde(flatten)]
    pub reach: Reach,
    /// Why, for people.
    pub reason: String,
    /// When it begins; none for at once, or for a weekly one.
    pub starts_at: Option<Timestamp>,
    /// When it ends; none for never.
    pub ends_at: Option<Timestamp>,
    /// None for a silence that applies once.
    pub schedule: Option<WeeklySchedule>,
}

/// When a silence begins every week, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WeeklySchedule {
    /// From 1 (Monday) to 7, separated by commas.
    pub weekdays: String,
    /// Minutes after midnight.
    pub start_minute: i32,
    /// How long it lasts each time.
    pub duration_minutes: i32,
    /// The time zone of `start_minute`, such as `Europe/Berlin`.
    pub time_zone: String,
}

impl Store {
    /// Inserts a silence.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many, and [`StoreError::NoServer`] when the server was deleted.
    pub async fn create_silence(
        &self,
        owner_id: Uuid,
        terms: SilenceTerms,
        actor: Actor,
    ) -> Result<Silence, StoreError> {
        let now = Millis::from(Timestamp::now());
        let detail = serde_json::to_value(&terms).unwrap_or_default();
        let created_by = actor.username.to_string();
        let entry = entry(action::SILENCE_CREATE, owner_id, actor, &terms.reach);
        let silence = Silence { created_by, ..row(Uuid::now_v7(), owner_id, terms, now) };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, owner_id, Quota::Silences).await?;
            let new = silence.clone().into_active_model().reset_all();
            let no_server = no_server_of(silence.server_id);
            silence::Entity::insert(new).exec_without_returning(&transaction).await.map_err(no_server)?;
            record_in(&transaction, entry.clone().target(silence.id).detail(detail.clone())).await?;
            transaction.commit().await?;
            Ok(silence.clone())
        })
        .await
    }

    /// Lists the silences of an account, and those that name a server that others share with it, newest first. With a server, only
    /// those that name it.
    pub async fn list_silences(
        &self,
        visible: &Visibility,
        server_id: Option<Uuid>,
        page: PageRequest,
    ) -> Result<Page<Silence>, StoreError> {
        let condition = Condition::all()
            .add(visible.naming(silence::Column::OwnerId, silence::Column::ServerId, silence::Column::Tag))
            .add_option(server_id.map(|id| silence::Column::ServerId.eq(id)));
        let query = silence::Entity::find().filter(condition);
        let total = query.clone().count(&self.read).await?;
        let items =
            query.order_by_desc(silence::Column::Id).limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items, total })
    }

    /// All silences of an owner that are not over at this time.
    pub async fn silences_of(&self, owner_id: Uuid, now: Timestamp) -> Result<Vec<Silence>, StoreError> {
        let ends_at = silence::Column::EndsAt;
        let goes_on = Condition::any().add(ends_at.is_null()).add(ends_at.gt(Millis::from(now)));
        let found = silence::Entity::find().filter(silence::Column::OwnerId.eq(owner_id)).filter(goes_on);
        Ok(found.all(&self.read).await?)
    }

    /// Finds a silence of any owner: its server decides who may see it.
    pub async fn find_silence(&self, id: Uuid) -> Result<Option<Silence>, StoreError> {
        Ok(silence::Entity::find_by_id(id).one(&self.read).await?)
    }

    /// Replaces the terms of a silence that was read. None where another request was faster.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoServer`] when the server was deleted.
    pub async fn change_silence(
        &self,
        found: &Silence,
        terms: SilenceTerms,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Option<Silence>, StoreError> {
        let now = Millis::from(now);
        let detail = differences(&SilenceTerms::from(found.clone()), &terms);
        let entry = entry(action::SILENCE_UPDATE, found.owner_id, actor, &terms.reach);
        let silence = Silence {
            created_by: found.created_by.clone(),
            created_at: found.created_at,
            ..row(found.id, found.owner_id, terms, now)
        };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let current = silence::Entity::find_by_id(found.id).lock_exclusive().one(&transaction).await?;
            if current.as_ref() != Some(found) {
                return Ok(None);
            }
            let no_server = no_server_of(silence.server_id);
            silence.clone().into_active_model().reset_all().update(&transaction).await.map_err(no_server)?;
            look_again(&transaction, found.owner_id, now).await?;
            record_in(&transaction, entry.clone().target(found.id).detail(detail.clone())).await?;
            transaction.commit().await?;
            Ok(Some(silence.clone()))
        })
        .await
    }

    /// Deletes a silence. Returns whether it still existed.
    pub async fn delete_silence(&self, silence: &Silence, actor: Actor, now: Timestamp) -> Result<bool, StoreError> {
        let terms = SilenceTerms::from(silence.clone());
        let entry = entry(action::SILENCE_DELETE, silence.owner_id, actor, &terms.reach);
        let detail = serde_json::to_value(&terms).unwrap_or_default();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if silence::Entity::delete_by_id(silence.id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            look_again(&transaction, silence.owner_id, now.into()).await?;
            record_in(&transaction, entry.clone().target(silence.id).detail(detail.clone())).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// Alerts that wait for the end of a silence may have to wait no longer, so they are checked now. Those that are being checked at
/// this moment get another time, too: by it [`Store::remind`] recognises that what it goes by is outdated.
pub(super) async fn look_again(
    connection: &impl ConnectionTrait,
    owner_id: Uuid,
    now: Millis,
) -> Result<(), StoreError> {
    alert::Entity::update_many()
        .col_expr(alert::Column::NotifyAt, Expr::value(now.0))
        .filter(alert::Column::OwnerId.eq(owner_id))
        .filter(alert::Column::NotifyAt.is_not_null())
        .exec(connection)
        .await?;
    Ok(())
}

fn row(id: Uuid, owner_id: Uuid, terms: SilenceTerms, now: Millis) -> Silence {
    let schedule = terms.schedule;
    Silence {
        id,
        owner_id,
        server_id: terms.reach.server_id,
        tag: terms.reach.tag,
        reason: terms.reason,
        starts_at: terms.starts_at.map(Millis::from),
        ends_at: terms.ends_at.map(Millis::from),
        start_minute: schedule.as_ref().map(|schedule| schedule.start_minute),
        duration_minutes: schedule.as_ref().map(|schedule| schedule.duration_minutes),
        time_zone: schedule.as_ref().map(|schedule| schedule.time_zone.clone()),
        weekdays: schedule.map(|schedule| schedule.weekdays),
        created_by: String::new(),
        created_at: now,
        updated_at: now,
    }
}

impl From<Silence> for SilenceTerms {
    fn from(row: Silence) -> Self {
        let schedule = row.weekdays.map(|weekdays| WeeklySchedule {
            weekdays,
            start_minute: row.start_minute.unwrap_or_default(),
            duration_minutes: row.duration_minutes.unwrap_or_default(),
            time_zone: row.time_zone.unwrap_or_default(),
        });
        Self {
            reach: Reach { server_id: row.server_id, tag: row.tag },
            reason: row.reason,
            starts_at: row.starts_at.map(Timestamp::from),
            ends_at: row.ends_at.map(Timestamp::from),
            schedule,
        }
    }
}

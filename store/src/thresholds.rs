use entity::{Millis, alert_threshold};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect,
};
use serde::Serialize;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::{differences, record_in};
use super::failure::no_server_of;
use super::{Page, PageRequest, Quota, Store, StoreError, Threshold, Visibility};
use crate::audit::{Actor, Entry, action};

/// The servers that something applies to. With neither a server nor a tag: every server of its owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// This server.
    pub server_id: Option<Uuid>,
    /// The owner's servers with this tag.
    pub tag: Option<String>,
}

/// What a user chooses for a threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdTerms {
    /// The servers that it applies to.
    #[serde(flatten)]
    pub reach: Reach,
    /// The metric, in the API's words.
    pub metric_type: String,
    /// The name of the open series, where the metric is one.
    pub series: Option<String>,
    /// The value to compare with.
    pub threshold_value: f64,
    /// The value at which an alert recovers; none for `threshold_value`.
    pub clear_value: Option<f64>,
    /// How to compare.
    pub comparison: String,
    /// For how long the value must be beyond `threshold_value`.
    pub duration_seconds: i32,
    /// The disk, interface, sensor or container; none for the worst of all.
    pub target: Option<String>,
    /// For containers: the states that fire.
    pub states: Option<String>,
    /// The severity of its alerts.
    pub severity: String,
    /// Whether it is evaluated.
    pub enabled: bool,
}

/// Which thresholds a list contains; a field that is none filters nothing.
#[derive(Debug, Clone, Default)]
pub struct ThresholdFilter {
    /// Thresholds that name this server, without those for its tags.
    pub server_id: Option<Uuid>,
    /// Thresholds that are enabled, or not.
    pub is_enabled: Option<bool>,
    /// Thresholds about this metric.
    pub metric_type: Option<&'static str>,
}

impl Store {
    /// Inserts a threshold.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many, or would have too many evaluations, and
    /// [`StoreError::NoServer`] when the server was deleted.
    pub async fn create_threshold(
        &self,
        owner_id: Uuid,
        terms: ThresholdTerms,
        actor: Actor,
    ) -> Result<Threshold, StoreError> {
        let now = Millis::from(Timestamp::now());
        let entry = entry(action::THRESHOLD_CREATE, owner_id, actor, &terms.reach);
        let detail = serde_json::to_value(&terms).unwrap_or_default();
        let threshold = row(Uuid::now_v7(), owner_id, terms, now);
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, owner_id, Quota::Thresholds).await?;
            let before = self.evaluations_before(&transaction, owner_id).await?;
            let new = threshold.clone().into_active_model().reset_all();
            let no_server = no_server_of(threshold.server_id);
            alert_threshold::Entity::insert(new).exec_without_returning(&transaction).await.map_err(no_server)?;
            self.expect_few_evaluations(&transaction, before).await?;
            record_in(&transaction, entry.clone().target(threshold.id).detail(detail.clone())).await?;
            transaction.commit().await?;
            Ok(threshold.clone())
        })
        .await
    }

    /// Lists the thresholds of an account, and those that name a server that others share with it, newest first.
    pub async fn list_thresholds(
        &self,
        visible: &Visibility,
        filter: ThresholdFilter,
        page: PageRequest,
    ) -> Result<Page<Threshold>, StoreError> {
        use alert_threshold::Column;
        let condition = Condition::all()
            .add(visible.naming(Column::OwnerId, Column::ServerId, Column::Tag))
            .add_option(filter.server_id.map(|id| Column::ServerId.eq(id)))
            .add_option(filter.is_enabled.map(|is_enabled| Column::IsEnabled.eq(is_enabled)))
            .add_option(filter.metric_type.map(|metric| Column::MetricType.eq(metric)));
        let query = alert_threshold::Entity::find().filter(condition);
        let total = query.clone().count(&self.read).await?;
        let items = query.order_by_desc(Column::Id).limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items, total })
    }

    /// Finds a threshold of any owner: its server decides who may see it.
    pub async fn find_threshold(&self, id: Uuid) -> Result<Option<Threshold>, StoreError> {
        Ok(alert_threshold::Entity::find_by_id(id).one(&self.read).await?)
    }

    /// Replaces the terms of a threshold that was read. None where another request was faster.
    ///
    /// # Errors
    ///
    /// As [`Self::create_threshold`].
    pub async fn change_threshold(
        &self,
        found: &Threshold,
        terms: ThresholdTerms,
        actor: Actor,
    ) -> Result<Option<Threshold>, StoreError> {
        let now = Millis::from(Timestamp::now());
        let old = ThresholdTerms::from(found.clone());
        let detail = differences(&old, &terms);
        let entry = entry(action::THRESHOLD_UPDATE, found.owner_id, actor, &terms.reach);
        // The severity does not affect when it fires.
        let is_same_rule = terms == ThresholdTerms { severity: terms.severity.clone(), ..old };
        let (armed_at, revision) =
            if is_same_rule { (found.armed_at, found.revision) } else { (now, found.revision.saturating_add(1)) };
        let threshold =
            Threshold { armed_at, revision, created_at: found.created_at, ..row(found.id, found.owner_id, terms, now) };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let before = self.evaluations_before(&transaction, found.owner_id).await?;
            let current = alert_threshold::Entity::find_by_id(found.id).lock_exclusive().one(&transaction).await?;
            if current.as_ref() != Some(found) {
                return Ok(None);
            }
            let no_server = no_server_of(threshold.server_id);
            threshold.clone().into_active_model().reset_all().update(&transaction).await.map_err(no_server)?;
            self.expect_few_evaluations(&transaction, before).await?;
            record_in(&transaction, entry.clone().target(found.id).detail(detail.clone())).await?;
            transaction.commit().await?;
            Ok(Some(threshold.clone()))
        })
        .await
    }

    /// Deletes a threshold. Returns whether it still existed.
    pub async fn delete_threshold(&self, threshold: &Threshold, actor: Actor) -> Result<bool, StoreError> {
        let terms = ThresholdTerms::from(threshold.clone());
        let entry = entry(action::THRESHOLD_DELETE, threshold.owner_id, actor, &terms.reach);
        let detail = serde_json::to_value(&terms).unwrap_or_default();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if alert_threshold::Entity::delete_by_id(threshold.id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry.clone().target(threshold.id).detail(detail.clone())).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// An audit entry about something of this reach.
pub(super) fn entry(action: &'static str, owner_id: Uuid, actor: Actor, reach: &Reach) -> Entry {
    let entry = Entry::new(action, owner_id, actor);
    match reach.server_id {
        Some(server_id) => entry.on_server(server_id),
        None => entry,
    }
}

/// A threshold with these terms from now on.
fn row(id: Uuid, owner_id: Uuid, terms: ThresholdTerms, now: Millis) -> Threshold {
    Threshold {
        id,
        owner_id,
        server_id: terms.reach.server_id,
        tag: terms.reach.tag,
        metric_type: terms.metric_type,
        series: terms.series,
        threshold_value: terms.threshold_value,
        clear_value: terms.clear_value,
        comparison: terms.comparison,
        duration_seconds: terms.duration_seconds,
        target: terms.target,
        states: terms.states,
        severity: terms.severity,
        is_enabled: terms.enabled,
        armed_at: now,
        revision: 0,
        created_at: now,
        updated_at: now,
    }
}

impl From<Threshold> for ThresholdTerms {
    fn from(row: Threshold) -> Self {
        Self {
            reach: Reach { server_id: row.server_id, tag: row.tag },
            metric_type: row.metric_type,
            series: row.series,
            threshold_value: row.threshold_value,
            clear_value: row.clear_value,
            comparison: row.comparison,
            duration_seconds: row.duration_seconds,
            target: row.target,
            states: row.states,
            severity: row.severity,
            enabled: row.is_enabled,
        }
    }
}

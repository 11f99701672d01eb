//! What an evaluator needs: servers, their thresholds, and the alerts that these have raised.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use entity::{alert, alert_threshold, server, server_tag};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::schedule_alerts::SCHEDULE;
use super::{Alert, Store, StoreError, Threshold};

/// Which servers to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleScope<'a> {
    /// All servers.
    All,
    /// The servers of one owner.
    Owner(Uuid),
    /// One server.
    Server(Uuid),
    /// These servers, of any owner; at most as many as one statement accepts.
    Servers(&'a [Uuid]),
}

/// A server and what is watched on it.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedServer {
    /// The server.
    pub server_id: Uuid,
    /// The server's owner.
    pub owner_id: Uuid,
    /// The server's name.
    pub name: String,
    /// The server's tags.
    pub tags: Vec<String>,
    /// The session that holds the server; none while its agent is disconnected.
    pub session_id: Option<Uuid>,
    /// When the service last heard from its agent; none if never.
    pub last_seen_at: Option<Timestamp>,
    /// The enabled thresholds that apply to it.
    pub thresholds: Vec<Arc<Threshold>>,
    /// Unresolved alerts, and those that a user resolved while the metric has not recovered.
    pub unsettled: Vec<Alert>,
}

impl WatchedServer {
    /// Whether anything is watched on it.
    pub fn is_watched(&self) -> bool {
        !self.thresholds.is_empty() || !self.unsettled.is_empty()
    }
}

/// The columns that are read of a server.
#[derive(sea_orm::FromQueryResult)]
struct ServerRow {
    id: Uuid,
    owner_id: Uuid,
    name: String,
    agent: Option<String>,
    session_id: Option<Uuid>,
    last_seen_at: Option<entity::Millis>,
}

impl Store {
    /// Reads the servers of a scope with what is watched on each, which may be nothing.
    pub async fn watched_servers(&self, scope: RuleScope<'_>) -> Result<Vec<WatchedServer>, StoreError> {
        let rows: Vec<ServerRow> = server::Entity::find()
            .select_only()
            .columns([server::Column::Id, server::Column::OwnerId, server::Column::Name])
            .columns([server::Column::Agent, server::Column::SessionId, server::Column::LastSeenAt])
            .filter(of_server(scope))
            .into_model()
            .all(&self.read)
            .await?;
        let owners = match (scope, rows.first()) {
            (RuleScope::All, _) => Condition::all(),
            (_, None) => return Ok(Vec::new()),
            (RuleScope::Servers(ids), _) => for_servers(ids, &rows),
            (_, Some(row)) => Condition::all().add(alert_threshold::Column::OwnerId.eq(row.owner_id)),
        };
        let rules = alert_threshold::Entity::find()
            .filter(owners)
            .filter(alert_threshold::Column::IsEnabled.eq(true))
            .order_by_asc(alert_threshold::Column::Id)
            .all(&self.read)
            .await?;
        let rules = Rules::of(rules);
        let mut tags = self.tags_of_scope(scope).await?;
        let mut unsettled = self.unsettled(scope).await?;
        let servers =
            rows.into_iter().map(|ServerRow { id: server_id, owner_id, name, agent, session_id, last_seen_at }| {
                let tags = tags.remove(&server_id).unwrap_or_default();
                WatchedServer {
                    server_id,
                    owner_id,
                    name,
                    session_id,
                    last_seen_at: agent.and(last_seen_at).map(Timestamp::from),
                    thresholds: rules.on(server_id, owner_id, &tags),
                    unsettled: unsettled.remove(&server_id).unwrap_or_default(),
                    tags,
                }
            });
        Ok(servers.collect())
    }

    async fn tags_of_scope(&self, scope: RuleScope<'_>) -> Result<HashMap<Uuid, Vec<String>>, StoreError> {
        let mut query = server_tag::Entity::find();
        query = match scope {
            RuleScope::All => query,
            RuleScope::Server(id) => query.filter(server_tag::Column::ServerId.eq(id)),
            RuleScope::Servers(ids) => query.filter(server_tag::Column::ServerId.is_in(ids.iter().copied())),
            RuleScope::Owner(_) => {
                let ids = server::Entity::find().select_only().column(server::Column::Id).filter(of_server(scope));
                query.filter(server_tag::Column::ServerId.in_subquery(sea_orm::QueryTrait::into_query(ids)))
            }
        };
        let mut tags: HashMap<Uuid, Vec<String>> = HashMap::new();
        for row in query.order_by_asc(server_tag::Column::Position).all(&self.read).await? {
            tags.entry(row.server_id).or_default().push(row.tag);
        }
        Ok(tags)
    }

    async fn unsettled(&self, scope: RuleScope<'_>) -> Result<HashMap<Uuid, Vec<Alert>>, StoreError> {
        let of_scope = match scope {
            RuleScope::All => Condition::all(),
            RuleScope::Owner(id) => Condition::all().add(alert::Column::OwnerId.eq(id)),
            RuleScope::Server(id) => Condition::all().add(alert::Column::ServerId.eq(id)),
            RuleScope::Servers(ids) => Condition::all().add(alert::Column::ServerId.is_in(ids.iter().copied())),
        };
        let rows = alert::Entity::find()
            .filter(of_scope)
            .filter(alert::Column::RearmedAt.is_null())
            // No evaluator opens or ends them.
            .filter(alert::Column::MetricType.ne(SCHEDULE))
            .all(&self.read)
            .await?;
        let mut unsettled: HashMap<Uuid, Vec<Alert>> = HashMap::new();
        for row in rows {
            unsettled.entry(row.server_id).or_default().push(row);
        }
        Ok(unsettled)
    }

    /// Up to which sample, by the agent's clock, the service has evaluated a server's thresholds: one entry for each threshold
    /// with an alert that ended after `since`.
    pub async fn settled_up_to(
        &self,
        server_id: Uuid,
        since: Timestamp,
    ) -> Result<HashMap<Uuid, Timestamp>, StoreError> {
        let rows: Vec<(Uuid, entity::Millis)> = alert::Entity::find()
            .select_only()
            .columns([alert::Column::ThresholdId, alert::Column::SampleAt])
            .filter(alert::Column::ServerId.eq(server_id))
            .filter(alert::Column::RearmedAt.gte(since.as_millis()))
            .order_by_asc(alert::Column::SampleAt)
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().map(|(threshold_id, at)| (threshold_id, at.into())).collect())
    }
}

fn of_server(scope: RuleScope<'_>) -> Condition {
    match scope {
        RuleScope::All => Condition::all(),
        RuleScope::Owner(id) => Condition::all().add(server::Column::OwnerId.eq(id)),
        RuleScope::Server(id) => Condition::all().add(server::Column::Id.eq(id)),
        RuleScope::Servers(ids) => Condition::all().add(server::Column::Id.is_in(ids.iter().copied())),
    }
}

/// Restricts thresholds to those that may apply to these servers: an owner of ten thousand servers has as many for the others.
fn for_servers(ids: &[Uuid], rows: &[ServerRow]) -> Condition {
    let owners: HashSet<Uuid> = rows.iter().map(|row| row.owner_id).collect();
    let general = Condition::all()
        .add(alert_threshold::Column::OwnerId.is_in(owners))
        .add(alert_threshold::Column::ServerId.is_null());
    Condition::any().add(alert_threshold::Column::ServerId.is_in(ids.iter().copied())).add(general)
}

/// Thresholds, grouped by what they apply to.
#[derive(Default)]
struct Rules {
    of_servers: HashMap<Uuid, Vec<Arc<Threshold>>>,
    /// Those for tags, and those for all servers.
    of_owners: HashMap<Uuid, Vec<Arc<Threshold>>>,
}

impl Rules {
    fn of(thresholds: Vec<Threshold>) -> Self {
        let mut rules = Self::default();
        for threshold in thresholds.into_iter().map(Arc::new) {
            match threshold.server_id {
                Some(server_id) => rules.of_servers.entry(server_id).or_default().push(threshold),
                None => rules.of_owners.entry(threshold.owner_id).or_default().push(threshold),
            }
        }
        rules
    }

    fn on(&self, server_id: Uuid, owner_id: Uuid, tags: &[String]) -> Vec<Arc<Threshold>> {
        let own = self.of_servers.get(&server_id).into_iter().flatten();
        let is_meant = |threshold: &&Arc<Threshold>| threshold.tag.as_ref().is_none_or(|tag| tags.contains(tag));
        let general = self.of_owners.get(&owner_id).into_iter().flatten().filter(is_meant);
        own.chain(general).cloned().collect()
    }
}

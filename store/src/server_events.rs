//! Events of servers: written in transactions that hold the server's row, read by its owner, and bounded.

use std::collections::HashSet;

use entity::{Millis, server, server_event};
use sea_orm::sea_query::{Alias, Expr, ExprTrait, LockBehavior, LockType, Order, Query};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DatabaseBackend, EntityTrait, FromQueryResult,
    IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Page, PageRequest, ServerEvent, Share, Store, StoreError};

/// The kinds that say whether a server was connected.
pub mod presence {
    /// Its agent connected.
    pub const ONLINE: &str = "online";
    /// Its agent was gone.
    pub const OFFLINE: &str = "offline";
    /// The service was not running: what became of the server is unknown.
    pub const UNWATCHED: &str = "unwatched";
}

/// The machine rebooted.
pub const REBOOT: &str = "reboot";

/// The kinds of presence, as the partial index names them.
const IN_PRESENCE: &str = "IN ('online', 'offline', 'unwatched')";

/// Rows of one statement: six values each, and SQLite accepts 32,766.
const AT_ONCE: usize = 1_000;

/// Rows that one transaction removes.
const FORGOTTEN_AT_ONCE: u64 = 1_000;

/// An event to insert.
#[derive(Debug, Clone, PartialEq)]
pub struct NewServerEvent {
    /// The server.
    pub server_id: Uuid,
    /// What happened.
    pub kind: String,
    /// When.
    pub at: Timestamp,
    /// More about it, as a JSON object.
    pub detail: Value,
}

/// Which events of a server a list contains; a field that is none filters nothing.
#[derive(Debug, Clone, Default)]
pub struct ServerEventFilter {
    /// Events of this kind.
    pub kind: Option<String>,
    /// Events from this time on.
    pub start: Option<Timestamp>,
    /// Events before this time.
    pub end: Option<Timestamp>,
}

impl NewServerEvent {
    /// An event of this kind.
    pub fn new(server_id: Uuid, kind: &str, at: Timestamp, detail: Value) -> Self {
        Self { server_id, kind: kind.to_owned(), at, detail }
    }
}

impl Store {
    /// Writes events of servers that exist, and omits the others.
    pub async fn record_events(&self, events: &[NewServerEvent]) -> Result<(), StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let held = hold(&transaction, events.iter().map(|event| event.server_id)).await?;
            let known: Vec<_> = events.iter().filter(|event| held.contains(&event.server_id)).cloned().collect();
            insert(&transaction, known).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// Lists the events of a server, newest first.
    pub async fn list_events(
        &self,
        server_id: Uuid,
        filter: ServerEventFilter,
        page: PageRequest,
    ) -> Result<Page<ServerEvent>, StoreError> {
        use server_event::Column;
        let condition = in_range(filter).add(Column::ServerId.eq(server_id));
        let query = server_event::Entity::find().filter(condition);
        let total = query.clone().count(&self.read).await?;
        let newest_first = query.order_by_desc(Column::At).order_by_desc(Column::Id);
        let items = newest_first.limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items, total })
    }

    /// The events of presence of a server in a range, oldest first, after the last one before the range.
    pub async fn presence_events(
        &self,
        server_id: Uuid,
        start: Timestamp,
        end: Timestamp,
    ) -> Result<Vec<ServerEvent>, StoreError> {
        use server_event::Column;
        let all = server_event::Entity::find()
            .filter(Column::ServerId.eq(server_id))
            .filter(Expr::cust(format!("kind {IN_PRESENCE}")));
        let before = all
            .clone()
            .filter(Column::At.lte(Millis::from(start)))
            .order_by_desc(Column::At)
            .order_by_desc(Column::Id)
            .one(&self.read)
            .await?;
        let within = all
            .filter(Column::At.gt(Millis::from(start)))
            .filter(Column::At.lt(Millis::from(end)))
            .order_by_asc(Column::At)
            .order_by_asc(Column::Id)
            .all(&self.read)
            .await?;
        Ok(before.into_iter().chain(within).collect())
    }

    /// When a machine last rebooted, if that was after `since`.
    pub async fn last_reboot(&self, server_id: Uuid, since: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        use server_event::Column;
        let last: Option<Millis> = server_event::Entity::find()
            .select_only()
            .column(Column::At)
            .filter(Column::ServerId.eq(server_id))
            .filter(Column::Kind.eq(REBOOT))
            .filter(Column::At.gt(Millis::from(since)))
            .order_by_desc(Column::At)
            .limit(1)
            .into_tuple()
            .one(&self.read)
            .await?;
        Ok(last.map(Timestamp::from))
    }

    /// How often a machine rebooted in a range.
    pub async fn count_reboots(&self, server_id: Uuid, start: Timestamp, end: Timestamp) -> Result<u64, StoreError> {
        use server_event::Column;
        let reboots = server_event::Entity::find()
            .filter(Column::ServerId.eq(server_id))
            .filter(Column::Kind.eq(REBOOT))
            .filter(Column::At.gte(Millis::from(start)))
            .filter(Column::At.lt(Millis::from(end)));
        Ok(reboots.count(&self.read).await?)
    }

    /// Records as missing the servers of a share that the service has not watched since before `since` and that have not come
    /// back. Returns how many.
    pub async fn miss_servers(&self, share: &Share, since: Timestamp, now: Timestamp) -> Result<usize, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let missing = missing(&transaction, share, since).await?;
            let gone = |id| NewServerEvent::new(id, presence::OFFLINE, now, missing_detail());
            let count = missing.len();
            insert(&transaction, missing.into_iter().map(gone).collect()).await?;
            transaction.commit().await?;
            Ok(count)
        })
        .await
    }

    /// Removes some events that are older than this. Returns how many; there may be more until it returns 0. The last event of
    /// presence of each server stays, because it still describes the server.
    pub async fn forget_events(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.forget_where(before, Condition::all()).await
    }

    /// Removes some of the oldest events of servers that have more than this, in the same way.
    pub async fn trim_events(&self, most: u64) -> Result<u64, StoreError> {
        use server_event::Column;
        let counts: Vec<(Uuid, i64)> = server_event::Entity::find()
            .select_only()
            .column(Column::ServerId)
            .column_as(Column::Id.count(), "events")
            .group_by(Column::ServerId)
            .having(Column::Id.count().gt(i64::try_from(most).unwrap_or(i64::MAX)))
            .into_tuple()
            .all(&self.read)
            .await?;
        let mut removed = 0;
        for (server_id, _) in counts {
            let first_kept = server_event::Entity::find()
                .filter(Column::ServerId.eq(server_id))
                .order_by_desc(Column::At)
                .order_by_desc(Column::Id)
                .offset(most.saturating_sub(1))
                .limit(1)
                .one(&self.read)
                .await?;
            let Some(first_kept) = first_kept else { continue };
            let of_server = Condition::all().add(Column::ServerId.eq(server_id));
            while self.forget_where(first_kept.at.into(), of_server.clone()).await? > 0 {
                removed += 1;
            }
        }
        Ok(removed)
    }

    async fn forget_where(&self, before: Timestamp, condition: Condition) -> Result<u64, StoreError> {
        use server_event::Column;
        let before_ms = before.as_millis();
        // The text contains only numbers.
        let is_last_turn = format!(
            "(server_events.kind {IN_PRESENCE} AND NOT EXISTS (SELECT 1 FROM server_events later \
             WHERE later.server_id = server_events.server_id AND later.kind {IN_PRESENCE} AND later.at < {before_ms} \
             AND later.at >= server_events.at AND (later.at > server_events.at OR (later.at = server_events.at AND later.id > server_events.id))))"
        );
        let ids: Vec<Uuid> = server_event::Entity::find()
            .select_only()
            .column(Column::Id)
            .filter(condition)
            .filter(Column::At.lt(Millis::from(before)))
            .filter(Expr::cust(format!("NOT {is_last_turn}")))
            .order_by_asc(Column::At)
            .limit(FORGOTTEN_AT_ONCE)
            .into_tuple()
            .all(&self.read)
            .await?;
        if ids.is_empty() {
            return Ok(0);
        }
        let removed = self.retried(|| async {
            let rows = server_event::Entity::delete_many().filter(Column::Id.is_in(ids.iter().copied()));
            Ok(rows.exec(&self.write).await?.rows_affected)
        });
        removed.await
    }
}

/// The events of a filter, of any server.
pub(super) fn in_range(filter: ServerEventFilter) -> Condition {
    use server_event::Column;
    Condition::all()
        .add_option(filter.kind.map(|kind| Column::Kind.eq(kind)))
        .add_option(filter.start.map(|start| Column::At.gte(Millis::from(start))))
        .add_option(filter.end.map(|end| Column::At.lt(Millis::from(end))))
}

/// Those of these servers that exist. Nobody deletes them until the transaction ends.
pub(super) async fn hold(
    connection: &impl ConnectionTrait,
    servers: impl Iterator<Item = Uuid>,
) -> Result<Vec<Uuid>, StoreError> {
    let found = server::Entity::find()
        .select_only()
        .column(server::Column::Id)
        .filter(server::Column::Id.is_in(servers))
        .order_by_asc(server::Column::Id);
    let found = if connection.get_database_backend() == DatabaseBackend::Postgres {
        found.lock(LockType::KeyShare)
    } else {
        found
    };
    Ok(found.into_tuple().all(connection).await?)
}

/// Servers whose last event of presence is `unwatched` from before `since`, and that no session holds.
async fn missing(connection: &impl ConnectionTrait, share: &Share, since: Timestamp) -> Result<Vec<Uuid>, StoreError> {
    let since_ms = since.as_millis();
    let is_unwatched = format!(
        "EXISTS (SELECT 1 FROM server_events e WHERE e.server_id = servers.id AND e.kind {IN_PRESENCE} \
         AND e.kind = '{}' AND e.at < {since_ms} AND NOT EXISTS (SELECT 1 FROM server_events later \
         WHERE later.server_id = e.server_id AND later.kind {IN_PRESENCE} \
         AND later.at >= e.at AND (later.at > e.at OR (later.at = e.at AND later.id > e.id))))",
        presence::UNWATCHED
    );
    let mut query = Query::select();
    query
        .column(Alias::new("id"))
        .from(Alias::new("servers"))
        .and_where(Expr::col(Alias::new("session_id")).is_null())
        .and_where(Expr::col(Alias::new("agent")).is_not_null())
        .and_where(Expr::cust(is_unwatched))
        .order_by(Alias::new("id"), Order::Asc);
    if let Some(condition) = share.condition("servers.id") {
        query.and_where(condition);
    }
    if connection.get_database_backend() == DatabaseBackend::Postgres {
        // An agent that is connecting has priority.
        query.lock_with_behavior(LockType::NoKeyUpdate, LockBehavior::SkipLocked);
    }
    let rows = connection.query_all(&query).await?;
    Ok(rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, sea_orm::DbErr>>()?)
}

/// The detail of the departure of a server that has not come back.
fn missing_detail() -> Value {
    json!({ "reason": "missing" })
}

/// Writes events of servers that are locked. Returns their rows.
pub(super) async fn insert(
    connection: &impl ConnectionTrait,
    events: Vec<NewServerEvent>,
) -> Result<Vec<ServerEvent>, StoreError> {
    let rows = events.into_iter().map(|event| ServerEvent {
        id: Uuid::now_v7(),
        server_id: event.server_id,
        kind: event.kind,
        at: event.at.into(),
        detail: event.detail.to_string(),
    });
    let rows: Vec<_> = rows.collect();
    for some in rows.chunks(AT_ONCE) {
        let some = some.iter().map(|row| row.clone().into_active_model().reset_all());
        server_event::Entity::insert_many(some).exec_without_returning(connection).await?;
    }
    Ok(rows)
}

/// Removes departures that are so recent that they were no outage. Returns the servers. One that was recorded as missing has been
/// away for longer.
pub(super) async fn take_back(
    connection: &impl ConnectionTrait,
    servers: impl Iterator<Item = Uuid>,
    after: Timestamp,
) -> Result<Vec<Uuid>, StoreError> {
    use server_event::Column;
    let mut brief: Vec<Brief> = server_event::Entity::find()
        .select_only()
        .columns([Column::Id, Column::ServerId, Column::Detail])
        .filter(Column::ServerId.is_in(servers))
        .filter(Expr::cust(format!("kind {IN_PRESENCE}")))
        .filter(Column::Kind.ne(presence::ONLINE))
        .filter(Column::At.gt(Millis::from(after)))
        .into_model()
        .all(connection)
        .await?;
    let missing_detail = missing_detail().to_string();
    let was_missing = brief.iter().filter(|event| event.detail == missing_detail);
    let missing: HashSet<Uuid> = was_missing.map(|event| event.server_id).collect();
    brief.retain(|event| !missing.contains(&event.server_id));
    if !brief.is_empty() {
        let ids = brief.iter().map(|event| event.id);
        server_event::Entity::delete_many().filter(Column::Id.is_in(ids)).exec(connection).await?;
    }
    Ok(brief.into_iter().map(|event| event.server_id).collect())
}

#[derive(FromQueryResult)]
struct Brief {
    id: Uuid,
    server_id: Uuid,
    detail: String,
}

/// Removes all events of a server.
pub(super) async fn delete_events(connection: &impl ConnectionTrait, server_id: Uuid) -> Result<(), StoreError> {
    let events = server_event::Entity::delete_many().filter(server_event::Column::ServerId.eq(server_id));
    events.exec(connection).await?;
    Ok(())
}

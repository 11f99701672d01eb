//! Servers on which something is watched and that no session holds. Only PostgreSQL supports several instances.

use std::collections::HashMap;

use sea_orm::sea_query::{Alias, Expr, ExprTrait, Query};
use sea_orm::{ConnectionTrait, DatabaseBackend, DbErr, Statement};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::instances::DEAD_AFTER_MS;
use super::{Share, Store, StoreError};

/// The watched servers without a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfflineServers {
    /// When the service last heard from the agent of each.
    pub servers: HashMap<Uuid, Option<Timestamp>>,
    /// When the longest-running live instance started; none without one.
    pub since: Option<Timestamp>,
}

/// Requires that a threshold applies to a server, or one of its alerts is unsettled. Runs look after those of schedules.
const WATCHED: &str = "(\
    EXISTS (SELECT 1 FROM alert_thresholds t WHERE t.server_id = servers.id AND t.is_enabled) \
    OR EXISTS (SELECT 1 FROM alert_thresholds t WHERE t.owner_id = servers.owner_id AND t.server_id IS NULL \
        AND t.is_enabled AND (t.tag IS NULL OR EXISTS \
            (SELECT 1 FROM server_tags g WHERE g.server_id = servers.id AND g.tag = t.tag))) \
    OR EXISTS (SELECT 1 FROM alerts a WHERE a.server_id = servers.id AND a.rearmed_at IS NULL \
        AND a.metric_type <> 'schedule'))";

impl Store {
    /// The servers of a share that had an agent, have none now, and on which something is watched.
    pub async fn unattended(&self, share: &Share) -> Result<OfflineServers, StoreError> {
        let mut query = Query::select();
        query
            .columns([Alias::new("id"), Alias::new("last_seen_at")])
            .from(Alias::new("servers"))
            .and_where(Expr::col(Alias::new("session_id")).is_null())
            .and_where(Expr::col(Alias::new("agent")).is_not_null())
            .and_where(Expr::cust(WATCHED));
        if let Some(condition) = share.condition("servers.id") {
            query.and_where(condition);
        }
        let rows = self.read.query_all(&query).await?;
        let servers = rows.iter().map(|row| {
            let last_seen_at: Option<i64> = row.try_get_by_index(1)?;
            Ok((row.try_get_by_index(0)?, last_seen_at.map(Timestamp::from_millis)))
        });
        Ok(OfflineServers { servers: servers.collect::<Result<_, DbErr>>()?, since: self.began().await? })
    }

    /// When the longest-running live instance started.
    async fn began(&self) -> Result<Option<Timestamp>, StoreError> {
        let oldest = "SELECT MIN(started_at) FROM instances \
                      WHERE seen_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1";
        let oldest = Statement::from_sql_and_values(DatabaseBackend::Postgres, oldest, [DEAD_AFTER_MS.into()]);
        let Some(row) = self.read.query_one_raw(oldest).await? else { return Ok(None) };
        Ok(row.try_get_by_index::<Option<i64>>(0)?.map(Timestamp::from_millis))
    }
}

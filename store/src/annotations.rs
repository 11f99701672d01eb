//! Annotations: events of servers that people and programs write, which are deploys and notes.
//!
//! A server keeps a limited number of them, so that a program that writes without end cannot fill the table. The oldest writing
//! goes first, whatever time it is about.

use entity::server_event;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::audit_log::record_in;
use super::server_events::{NewServerEvent, hold, insert};
use super::{ServerEvent, Store, StoreError};
use crate::audit::Entry;

/// The annotations that a server keeps: three a day for a year.
pub const MAX_ANNOTATIONS: u64 = 1_000;

/// The kinds of annotations, as the partial index names them.
const IN_ANNOTATIONS: &str = "kind IN ('deploy', 'note')";

impl Store {
    /// Writes annotations of servers that exist, at most one of each server, and omits the others. Returns what was written.
    /// Each owner of servers has an entry, which is about all of theirs; of a single event the entry names it.
    pub async fn annotate(
        &self,
        new: Vec<NewServerEvent>,
        entries: Vec<Entry>,
    ) -> Result<Vec<ServerEvent>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let held = hold(&transaction, new.iter().map(|event| event.server_id)).await?;
            let known = new.iter().filter(|event| held.contains(&event.server_id)).cloned();
            let written = insert(&transaction, known.collect()).await?;
            if written.is_empty() {
                return Ok(written);
            }
            trim(&transaction, &held).await?;
            for entry in &entries {
                let entry = match (written.as_slice(), entries.as_slice()) {
                    ([only], [_]) => entry.clone().on_server(only.server_id).target(only.id),
                    _ => entry.clone(),
                };
                record_in(&transaction, entry).await?;
            }
            transaction.commit().await?;
            Ok(written)
        })
        .await
    }

    /// Finds an annotation of a server.
    pub async fn find_annotation(&self, server_id: Uuid, id: Uuid) -> Result<Option<ServerEvent>, StoreError> {
        let found = server_event::Entity::find_by_id(id)
            .filter(server_event::Column::ServerId.eq(server_id))
            .filter(Expr::cust(IN_ANNOTATIONS));
        Ok(found.one(&self.read).await?)
    }

    /// Deletes an annotation of a server. Returns whether it existed.
    pub async fn delete_annotation(&self, server_id: Uuid, id: Uuid, entry: Entry) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let of_server = server_event::Entity::delete_many()
                .filter(server_event::Column::Id.eq(id))
                .filter(server_event::Column::ServerId.eq(server_id))
                .filter(Expr::cust(IN_ANNOTATIONS));
            if of_server.exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// Removes what these servers have too many of.
async fn trim(connection: &impl ConnectionTrait, servers: &[Uuid]) -> Result<(), StoreError> {
    use server_event::Column;
    let all = || server_event::Entity::find().select_only().filter(Expr::cust(IN_ANNOTATIONS));
    let full: Vec<Uuid> = all()
        .column(Column::ServerId)
        .filter(Column::ServerId.is_in(servers.iter().copied()))
        .group_by(Column::ServerId)
        .having(Column::Id.count().gt(i64::try_from(MAX_ANNOTATIONS).unwrap_or(i64::MAX)))
        .into_tuple()
        .all(connection)
        .await?;
    for server_id in full {
        let first_removed: Option<Uuid> = all()
            .column(Column::Id)
            .filter(Column::ServerId.eq(server_id))
            .order_by_desc(Column::Id)
            .offset(MAX_ANNOTATIONS)
            .limit(1)
            .into_tuple()
            .one(connection)
            .await?;
        let Some(first_removed) = first_removed else { continue };
        server_event::Entity::delete_many()
            .filter(Expr::cust(IN_ANNOTATIONS))
            .filter(Column::ServerId.eq(server_id))
            .filter(Column::Id.lte(first_removed))
            .exec(connection)
            .await?;
    }
    Ok(())
}

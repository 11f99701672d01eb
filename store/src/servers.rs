use std::collections::HashMap;

use entity::{Millis, api_key, grant, series_help, server, server_tag};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
    Set,
};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::audit_log::{changed, record_in};
use super::grants::entries_of_ended;
use super::server_events::delete_events;
use super::silences::look_again;
use super::{Quota, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// The default port of a server: SSH's.
pub const DEFAULT_PORT: u16 = 22;

/// A server with its tags.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// The row.
    pub record: server::Model,
    /// The tags, in order.
    pub tags: Vec<String>,
}

/// A server to insert.
#[derive(Debug, Clone)]
pub struct NewServer {
    /// The owner.
    pub owner_id: Uuid,
    /// The name, for people.
    pub name: String,
    /// The host name or address, for people.
    pub host: String,
    /// The port, for people.
    pub port: u16,
    /// The description, for people.
    pub description: String,
    /// The tags.
    pub tags: Vec<String>,
}

/// The changes to a server; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct ServerPatch {
    /// The name, for people.
    pub name: Option<String>,
    /// The host name or address, for people.
    pub host: Option<String>,
    /// The port, for people.
    pub port: Option<u16>,
    /// The description, for people.
    pub description: Option<String>,
    /// The tags.
    pub tags: Option<Vec<String>>,
}

impl Store {
    /// Inserts a server.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many, or would have too many evaluations.
    pub async fn create_server(&self, new: NewServer, actor: Actor) -> Result<Server, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let (record, entry) = self.create_server_in(&transaction, &new, &actor).await?;
            record_in(&transaction, entry).await?;
            transaction.commit().await?;
            Ok(Server { record, tags: new.tags.clone() })
        })
        .await
    }

    /// Inserts a server in this transaction. The caller appends the entry at the end.
    pub(super) async fn create_server_in(
        &self,
        transaction: &impl ConnectionTrait,
        new: &NewServer,
        actor: &Actor,
    ) -> Result<(server::Model, Entry), StoreError> {
        let record = row_of(new);
        self.expect_room(transaction, new.owner_id, Quota::Servers).await?;
        let before = self.evaluations_before(transaction, new.owner_id).await?;
        let row = record.clone().into_active_model().reset_all();
        server::Entity::insert(row).exec_without_returning(transaction).await?;
        insert_tags(transaction, record.id, &new.tags).await?;
        self.expect_few_evaluations(transaction, before).await?;
        let entry = Entry::new(action::SERVER_CREATE, record.owner_id, actor.clone())
            .on_server_named(record.id, &record.name)
            .detail(json!({ "host": record.host, "port": record.port }));
        Ok((record, entry))
    }

    /// Finds a server of an owner.
    pub async fn find_server(&self, owner_id: Uuid, id: Uuid) -> Result<Option<Server>, StoreError> {
        let found = server::Entity::find_by_id(id).filter(server::Column::OwnerId.eq(owner_id)).one(&self.read).await?;
        let Some(record) = found else { return Ok(None) };
        let mut tags = tags_of(&self.read, &[record.id]).await?;
        Ok(Some(Server { tags: tags.remove(&record.id).unwrap_or_default(), record }))
    }

    /// The server's owner. It is the one query that does not start with the owner, because that is its answer.
    pub async fn owner_of_server(&self, id: Uuid) -> Result<Option<Uuid>, StoreError> {
        let owner = server::Entity::find_by_id(id).select_only().column(server::Column::OwnerId).into_tuple();
        Ok(owner.one(&self.read).await?)
    }

    /// Whether the user owns this server. For another user's server it returns the same as for one that does not exist, and
    /// takes as long.
    pub async fn owns_server(&self, owner_id: Uuid, id: Uuid) -> Result<bool, StoreError> {
        let found = server::Entity::find_by_id(id).filter(server::Column::OwnerId.eq(owner_id)).select_only();
        let found = found.column(server::Column::Id).into_tuple::<Uuid>();
        Ok(found.one(&self.read).await?.is_some())
    }

    /// The tags of a server, in order.
    pub async fn tags_of_server(&self, id: Uuid) -> Result<Vec<String>, StoreError> {
        Ok(tags_of(&self.read, &[id]).await?.remove(&id).unwrap_or_default())
    }

    /// Changes a server. None when the owner has no such server.
    pub async fn update_server(
        &self,
        owner_id: Uuid,
        id: Uuid,
        patch: ServerPatch,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Option<Server>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Thresholds may be for tags. The owner is locked before the server, as when a key is created for it.
            let before = match patch.tags {
                Some(_) => Some(self.evaluations_before(&transaction, owner_id).await?),
                None => None,
            };
            let found = server::Entity::find_by_id(id)
                .filter(server::Column::OwnerId.eq(owner_id))
                .lock_exclusive()
                .one(&transaction)
                .await?;
            let Some(record) = found else { return Ok(None) };
            let detail = changes(&record, &patch);
            let patched = patched(record, &patch);
            // Writes only what a patch can name: an agent that connects at the same time writes the other columns.
            let row = server::ActiveModel {
                id: Set(id),
                search_text: Set(patched.search_text),
                name: Set(patched.name),
                host: Set(patched.host),
                port: Set(patched.port),
                description: Set(patched.description),
                updated_at: Set(now.into()),
                ..Default::default()
            };
            let record = row.update(&transaction).await?;
            if let Some(tags) = &patch.tags {
                server_tag::Entity::delete_many()
                    .filter(server_tag::Column::ServerId.eq(id))
                    .exec(&transaction)
                    .await?;
                insert_tags(&transaction, id, tags).await?;
                if let Some(before) = before {
                    self.expect_few_evaluations(&transaction, before).await?;
                }
                // Silences may be for tags, too.
                look_again(&transaction, owner_id, record.updated_at).await?;
            }
            let mut tags = tags_of(&transaction, &[id]).await?;
            let entry = Entry::new(action::SERVER_UPDATE, owner_id, actor.clone())
                .on_server_named(id, &record.name)
                .detail(detail);
            record_in(&transaction, entry).await?;
            transaction.commit().await?;
            Ok(Some(Server { tags: tags.remove(&id).unwrap_or_default(), record }))
        })
        .await
    }

    /// Removes a server, its keys and tags. Returns whether it existed. [`Self::delete_history`] removes its history once
    /// nobody writes any more.
    pub async fn delete_server(&self, owner_id: Uuid, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Locked before its keys, as when an agent connects.
            let owned = server::Entity::find_by_id(id).filter(server::Column::OwnerId.eq(owner_id));
            let Some(record) = owned.lock_exclusive().one(&transaction).await? else { return Ok(false) };
            api_key::Entity::delete_many().filter(api_key::Column::ServerId.eq(id)).exec(&transaction).await?;
            server_tag::Entity::delete_many().filter(server_tag::Column::ServerId.eq(id)).exec(&transaction).await?;
            series_help::Entity::delete_many().filter(series_help::Column::ServerId.eq(id)).exec(&transaction).await?;
            delete_events(&transaction, id).await?;
            let ended = entries_of_ended(&transaction, grant::Column::ServerId.eq(id), &actor).await?;
            let deleted = server::Entity::delete_by_id(id).exec(&transaction).await?;
            // Another request was faster, and has written the entry.
            if deleted.rows_affected == 0 {
                return Ok(false);
            }
            for entry in ended {
                record_in(&transaction, entry.on_server_named(id, &record.name)).await?;
            }
            let entry = Entry::new(action::SERVER_DELETE, owner_id, actor.clone()).on_server_named(id, record.name);
            record_in(&transaction, entry).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

impl Server {
    /// The status, as the database knows it.
    pub fn status(&self) -> ServerStatus {
        recorded_status(self.record.session_id.is_some(), self.record.agent.is_some())
    }
}

pub(super) fn recorded_status(has_session: bool, has_agent: bool) -> ServerStatus {
    match (has_session, has_agent) {
        (true, _) => ServerStatus::Online,
        (false, true) => ServerStatus::Offline,
        (false, false) => ServerStatus::Pending,
    }
}

fn row_of(new: &NewServer) -> server::Model {
    let now = Millis::from(Timestamp::now());
    server::Model {
        id: Uuid::now_v7(),
        owner_id: new.owner_id,
        search_text: search_text(&new.name, &new.host, &new.description),
        name: new.name.clone(),
        host: new.host.clone(),
        port: new.port.into(),
        description: new.description.clone(),
        agent: None,
        session_id: None,
        instance_id: None,
        session_epoch: 0,
        last_seen_at: None,
        series_dropped: 0,
        created_at: now,
        updated_at: now,
    }
}

/// The record with the patch applied.
fn patched(record: server::Model, patch: &ServerPatch) -> server::Model {
    let name = patch.name.clone().unwrap_or(record.name);
    let host = patch.host.clone().unwrap_or(record.host);
    let description = patch.description.clone().unwrap_or(record.description);
    let port = patch.port.map_or(record.port, i32::from);
    server::Model { search_text: search_text(&name, &host, &description), name, host, description, port, ..record }
}

/// The audit detail of a patch, with old and new values.
fn changes(record: &server::Model, patch: &ServerPatch) -> Value {
    let text = |old: &String, new: &Option<String>| changed(old, new.as_ref());
    let fields = [
        ("name", text(&record.name, &patch.name)),
        ("host", text(&record.host, &patch.host)),
        ("port", changed(&record.port, patch.port.map(i32::from).as_ref())),
        ("description", text(&record.description, &patch.description)),
        ("tags", patch.tags.as_ref().map(|tags| json!({ "to": tags }))),
    ];
    let named = fields.into_iter().filter_map(|(name, change)| Some((name.to_owned(), change?)));
    named.collect::<serde_json::Map<_, _>>().into()
}

fn search_text(name: &str, host: &str, description: &str) -> String {
    format!("{name}\n{host}\n{description}").to_lowercase()
}

async fn insert_tags(connection: &impl ConnectionTrait, server_id: Uuid, tags: &[String]) -> Result<(), StoreError> {
    if tags.is_empty() {
        return Ok(());
    }
    let rows = (0..).zip(tags).map(|(position, tag)| server_tag::ActiveModel {
        server_id: Set(server_id),
        tag: Set(tag.clone()),
        position: Set(position),
        ..Default::default()
    });
    server_tag::Entity::insert_many(rows).exec_without_returning(connection).await?;
    Ok(())
}

pub(super) async fn tags_of(
    connection: &impl ConnectionTrait,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, Vec<String>>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = server_tag::Entity::find()
        .filter(server_tag::Column::ServerId.is_in(ids.iter().copied()))
        .order_by_asc(server_tag::Column::Position)
        .all(connection)
        .await?;
    let mut tags: HashMap<Uuid, Vec<String>> = HashMap::new();
    for row in rows {
        tags.entry(row.server_id).or_default().push(row.tag);
    }
    Ok(tags)
}

//! Updates of many servers on SQLite, which has no arrays: a fixed number of rows per statement, because each statement is a
//! round trip to the driver's thread.

use std::collections::BTreeMap;

use sea_orm::{ConnectionTrait, Statement, Value};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Connected, Disconnected};
use crate::StoreError;

/// Rows of one statement. A shorter part repeats some, because the driver caches each text that it has prepared.
const ROWS_AT_ONCE: usize = 64;

/// Writes when servers were last seen.
pub(super) async fn write_seen(
    connection: &impl ConnectionTrait,
    seen: &[(Uuid, Timestamp)],
) -> Result<(), StoreError> {
    let rows: Vec<[Value; 2]> = seen.iter().map(|(id, at)| [(*id).into(), at.as_millis().into()]).collect();
    // The same commit may contain a session that ended later.
    let update = "servers SET last_seen_at = max(ifnull(servers.last_seen_at, new.at), new.at) \
         FROM new WHERE servers.id = new.id";
    write(connection, "id, at", update, &rows).await
}

pub(super) async fn write_connected(
    connection: &impl ConnectionTrait,
    connected: &[Connected],
) -> Result<(), StoreError> {
    // The last one counts.
    let by_server: BTreeMap<Uuid, &Connected> = connected.iter().map(|new| (new.server_id, new)).collect();
    let servers: Vec<[Value; 4]> = by_server
        .into_values()
        .map(|new| [new.server_id.into(), new.session_id.into(), new.agent.clone().into(), new.at.as_millis().into()])
        .collect();
    let of_servers = "servers SET session_id = new.session_id, agent = new.agent, last_seen_at = new.at \
         FROM new WHERE servers.id = new.id";
    write(connection, "id, session_id, agent, at", of_servers, &servers).await?;
    let by_key: BTreeMap<Uuid, Timestamp> = connected.iter().map(|new| (new.key_id, new.at)).collect();
    let keys: Vec<[Value; 2]> = by_key.into_iter().map(|(id, at)| [id.into(), at.as_millis().into()]).collect();
    let of_keys = "api_keys SET last_used_at = new.at FROM new WHERE api_keys.id = new.id";
    write(connection, "id, at", of_keys, &keys).await
}

/// Only the session that still holds the server releases it, or one of those that it took the server over from.
pub(super) async fn write_disconnected(
    connection: &impl ConnectionTrait,
    disconnected: &[Disconnected],
) -> Result<(), StoreError> {
    let of_one = |gone: &Disconnected| {
        let (server_id, at) = (gone.server_id, gone.last_seen_at.as_millis());
        let sessions: Vec<Uuid> = gone.replaced.iter().copied().chain([gone.session_id]).collect();
        sessions.into_iter().map(move |session_id| [Value::from(server_id), session_id.into(), at.into()])
    };
    let rows: Vec<[Value; 3]> = disconnected.iter().flat_map(of_one).collect();
    let update = "servers SET session_id = NULL, instance_id = NULL, last_seen_at = new.at \
         FROM new WHERE servers.id = new.id AND servers.session_id = new.session_id";
    write(connection, "id, session_id, at", update, &rows).await
}

async fn write<const N: usize>(
    connection: &impl ConnectionTrait,
    columns: &str,
    update: &str,
    rows: &[[Value; N]],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let row = format!("({})", ["?"; N].join(", "));
    let places = vec![row; ROWS_AT_ONCE].join(", ");
    let statement = format!("WITH new ({columns}) AS (VALUES {places}) UPDATE {update}");
    for part in rows.chunks(ROWS_AT_ONCE) {
        let values: Vec<Value> = part.iter().cycle().take(ROWS_AT_ONCE).flatten().cloned().collect();
        let backend = connection.get_database_backend();
        connection.execute_raw(Statement::from_sql_and_values(backend, statement.as_str(), values)).await?;
    }
    Ok(())
}

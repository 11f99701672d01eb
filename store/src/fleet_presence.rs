//! The presence of many servers at once, for an overview.

use std::collections::HashMap;

use entity::{Millis, server, server_event};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QuerySelect, Statement, Value};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Page, PageRequest, ServerEvent, Store, StoreError, Visibility};

/// Events of one server that are read: a server that comes and goes every minute and a half has fewer in a day.
const MAX_EVENTS: usize = 1_000;

/// The kinds of presence, as the partial index names them.
const IN_PRESENCE: &str = "IN ('online', 'offline', 'unwatched')";

impl Store {
    /// The ids of the visible servers, ordered by name: of those in `among`, or of all.
    pub async fn visible_server_ids(
        &self,
        visible: &Visibility,
        among: Option<&[Uuid]>,
        page: PageRequest,
    ) -> Result<Page<Uuid>, StoreError> {
        let among = among.map(|ids| server::Column::Id.is_in(ids.iter().copied()));
        let (query, total) = self.page_of_servers(visible, &Condition::all().add_option(among), page).await?;
        let items = query.select_only().column(server::Column::Id).into_tuple().all(&self.read).await?;
        Ok(Page { items, total })
    }

    /// The events of presence of the visible ones of these servers in a range, oldest first, each server's after the last one
    /// before the range. Of a server with very many, only the newest are returned, without the one before them.
    pub async fn presence_of_servers(
        &self,
        visible: &Visibility,
        server_ids: &[Uuid],
        start: Timestamp,
        end: Timestamp,
    ) -> Result<HashMap<Uuid, Vec<ServerEvent>>, StoreError> {
        let mut found: HashMap<Uuid, Vec<ServerEvent>> = HashMap::new();
        if server_ids.is_empty() {
            return Ok(found);
        }
        let ids: Vec<Uuid> = match visible.sole_owner() {
            Some(_) => server_ids.to_vec(),
            None => {
                let all = PageRequest { limit: server_ids.len() as u64, offset: 0 };
                self.visible_server_ids(visible, Some(server_ids), all).await?.items
            }
        };
        if ids.is_empty() {
            return Ok(found);
        }
        let mut values: Vec<Value> = vec![start.as_millis().into(), end.as_millis().into()];
        values.extend(visible.sole_owner().map(Value::from));
        let owned = visible.sole_owner().map_or("", |_| "servers.owner_id = $3 AND ");
        let numbers = (values.len() + 1..).map(|number| format!("${number}"));
        let numbers: Vec<String> = numbers.take(ids.len()).collect();
        let query = presence_query(&format!("{owned}servers.id IN ({})", numbers.join(", ")));
        values.extend(ids.into_iter().map(Value::from));
        let backend = self.read.get_database_backend();
        let statement = Statement::from_sql_and_values(backend, query, values);
        for event in server_event::Entity::find().from_raw_sql(statement).all(&self.read).await? {
            found.entry(event.server_id).or_default().push(event);
        }
        for events in found.values_mut() {
            let is_before = events.first().is_some_and(|first| first.at <= Millis::from(start));
            if is_before && events.len() > MAX_EVENTS {
                // What follows it was not read.
                events.remove(0);
            }
        }
        Ok(found)
    }
}

/// The statement for the servers that fulfil a condition. The start and the end are its first values.
fn presence_query(servers: &str) -> String {
    // Both parts read the partial index, one range per server: a subquery for each server finds its last event before.
    format!(
        "SELECT id, server_id, kind, at, detail FROM (\
         SELECT id, server_id, kind, at, detail FROM (\
         SELECT id, server_id, kind, at, detail, \
         ROW_NUMBER() OVER (PARTITION BY server_id ORDER BY at DESC, id DESC) AS place FROM server_events \
         WHERE server_id IN (SELECT servers.id FROM servers WHERE {servers}) \
         AND kind {IN_PRESENCE} AND at > $1 AND at < $2) AS newest WHERE place <= {MAX_EVENTS} \
         UNION ALL \
         SELECT id, server_id, kind, at, detail FROM server_events WHERE id IN (\
         SELECT (SELECT earlier.id FROM server_events AS earlier WHERE earlier.server_id = servers.id \
         AND earlier.kind {IN_PRESENCE} AND earlier.at <= $1 ORDER BY earlier.at DESC, earlier.id DESC LIMIT 1) \
         FROM servers WHERE {servers})) AS events ORDER BY server_id, at, id"
    )
}

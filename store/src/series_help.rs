//! The help texts of open series: one line for people, by server and name. The history stores name, unit, kind and target with
//! the values; the help of series that are long gone is of no use.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use entity::series_help;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::{Store, StoreError};

/// The most names of a server with help: all that one connection describes, and as many from earlier ones.
const MAX_DESCRIPTIONS: usize = 4_000;

/// The most servers and names of one query.
const MAX_NAMED: usize = 4_000;

/// Rows that one statement writes, so that it has not too many parameters.
const ROWS_AT_ONCE: usize = 1_000;

impl Store {
    /// The help of a server's open series, by name.
    pub async fn series_help(&self, server_id: Uuid) -> Result<HashMap<String, String>, StoreError> {
        use series_help::Column;
        let rows: Vec<(String, String)> = series_help::Entity::find()
            .select_only()
            .columns([Column::Name, Column::Help])
            .filter(Column::ServerId.eq(server_id))
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().collect())
    }

    /// The help of some series, by server and name.
    pub async fn help_of_series(
        &self,
        series: impl Iterator<Item = (Uuid, String)>,
    ) -> Result<HashMap<(Uuid, String), String>, StoreError> {
        use series_help::Column;
        let wanted: BTreeSet<(Uuid, String)> = series.collect();
        // Agents mostly describe the same series, so a few servers describe all of them.
        let servers: BTreeSet<Uuid> = wanted.iter().map(|(server_id, _)| *server_id).take(MAX_NAMED).collect();
        if servers.is_empty() {
            return Ok(HashMap::new());
        }
        let names: BTreeSet<&String> = wanted.iter().map(|(_, name)| name).take(MAX_NAMED).collect();
        let rows: Vec<((Uuid, String), String)> = series_help::Entity::find()
            .filter(Column::ServerId.is_in(servers))
            .filter(Column::Name.is_in(names))
            .all(&self.read)
            .await?
            .into_iter()
            .map(|row| ((row.server_id, row.name), row.help))
            .collect();
        Ok(rows.into_iter().filter(|(key, _)| wanted.contains(key)).collect())
    }

    /// Stores an agent's help texts, by name. It writes only new ones; where a server would have too many, it removes earlier
    /// ones.
    pub async fn note_series_help(&self, server_id: Uuid, help: &BTreeMap<String, String>) -> Result<(), StoreError> {
        use series_help::Column;
        let known = self.series_help(server_id).await?;
        let is_new = |(name, help): &(&String, &String)| known.get(*name) != Some(*help);
        let row = |(name, help): (&String, &String)| {
            series_help::Model { server_id, name: name.clone(), help: help.clone() }.into_active_model().reset_all()
        };
        let unknown = help.keys().filter(|name| !known.contains_key(*name)).count();
        let makes_room = known.len() + unknown > MAX_DESCRIPTIONS;
        // Repeated texts stay, too.
        let rows: Vec<_> =
            help.iter().filter(|entry| makes_room || is_new(entry)).take(MAX_DESCRIPTIONS).map(row).collect();
        if !help.iter().any(|entry| is_new(&entry)) {
            return Ok(());
        }
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if makes_room {
                series_help::Entity::delete_many().filter(Column::ServerId.eq(server_id)).exec(&transaction).await?;
            }
            for some in rows.chunks(ROWS_AT_ONCE) {
                let conflict =
                    OnConflict::columns([Column::ServerId, Column::Name]).update_column(Column::Help).to_owned();
                let insert = series_help::Entity::insert_many(some.to_vec()).on_conflict(conflict);
                insert.exec_without_returning(&transaction).await?;
            }
            Ok(transaction.commit().await?)
        })
        .await
    }
}

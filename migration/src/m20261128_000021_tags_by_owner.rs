//! Finds the servers that an owner has with a tag, and a page of an owner's servers in the order of their names, each by an index
//! alone: both are lists of a user with a grant of a tag.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

const FILL: &str =
    "UPDATE server_tags SET owner_id = (SELECT servers.owner_id FROM servers WHERE servers.id = server_tags.server_id)";

const TAGS_BY_OWNER: &str = "CREATE INDEX server_tags_by_owner ON server_tags (owner_id, tag, server_id)";

/// No longer part of the text: PostgreSQL refuses entries of more than 2,704 bytes.
const SERVERS_BY_NAME: &str = "CREATE INDEX servers_by_name ON servers (owner_id, substr(search_text, 1, 128), id)";

/// Triggers keep the owner of the tags, because a server can get another owner, and an instance of the version before writes tags
/// without one.
mod sqlite {
    pub const UP: [&str; 2] = [
        "CREATE TRIGGER server_tags_owner AFTER INSERT ON server_tags BEGIN UPDATE server_tags \
         SET owner_id = (SELECT servers.owner_id FROM servers WHERE servers.id = NEW.server_id) \
         WHERE server_id = NEW.server_id AND tag = NEW.tag; END",
        "CREATE TRIGGER server_tags_new_owner AFTER UPDATE OF owner_id ON servers WHEN OLD.owner_id <> NEW.owner_id \
         BEGIN UPDATE server_tags SET owner_id = NEW.owner_id WHERE server_id = NEW.id; END",
    ];

    pub const DOWN: [&str; 2] = ["DROP TRIGGER server_tags_new_owner", "DROP TRIGGER server_tags_owner"];
}

mod postgres {
    pub const UP: [&str; 4] = [
        "CREATE FUNCTION server_tags_owner() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         NEW.owner_id := (SELECT servers.owner_id FROM servers WHERE servers.id = NEW.server_id); RETURN NEW; END $$",
        "CREATE TRIGGER server_tags_owner BEFORE INSERT ON server_tags \
         FOR EACH ROW EXECUTE FUNCTION server_tags_owner()",
        "CREATE FUNCTION server_tags_new_owner() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         UPDATE server_tags SET owner_id = NEW.owner_id WHERE server_id = NEW.id; RETURN NULL; END $$",
        "CREATE TRIGGER server_tags_new_owner AFTER UPDATE OF owner_id ON servers \
         FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION server_tags_new_owner()",
    ];

    pub const DOWN: [&str; 4] = [
        "DROP TRIGGER server_tags_new_owner ON servers",
        "DROP FUNCTION server_tags_new_owner()",
        "DROP TRIGGER server_tags_owner ON server_tags",
        "DROP FUNCTION server_tags_owner()",
    ];
}

#[derive(DeriveIden)]
enum ServerTags {
    Table,
    OwnerId,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let owner = ColumnDef::new(ServerTags::OwnerId).uuid().to_owned();
        manager.alter_table(Table::alter().table(ServerTags::Table).add_column(owner).to_owned()).await?;
        let triggers: &[&str] = match manager.get_database_backend() {
            DatabaseBackend::Postgres => &postgres::UP,
            _ => &sqlite::UP,
        };
        for statement in triggers.iter().chain(&[FILL, TAGS_BY_OWNER, SERVERS_BY_NAME]) {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let triggers: &[&str] = match manager.get_database_backend() {
            DatabaseBackend::Postgres => &postgres::DOWN,
            _ => &sqlite::DOWN,
        };
        let indexes = ["DROP INDEX servers_by_name", "DROP INDEX server_tags_by_owner"];
        for statement in triggers.iter().chain(&indexes) {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        let without = Table::alter().table(ServerTags::Table).drop_column(ServerTags::OwnerId).to_owned();
        manager.alter_table(without).await
    }
}

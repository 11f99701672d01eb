//! The audit log, which can only be appended to, and the row that says where it ends.
//!
//! No foreign keys: entries outlive the users and servers that they mention.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, small_integer, text, text_null, uuid, uuid_null};
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum AuditLog {
    Table,
    Seq,
    At,
    OwnerId,
    UserId,
    Username,
    LoginId,
    Address,
    Action,
    ServerId,
    ServerName,
    Target,
    Outcome,
    Detail,
    Hash,
}

#[derive(DeriveIden)]
enum AuditHead {
    Table,
    Id,
    Seq,
    Hash,
}

/// `REPLACE` removes rows without the delete trigger, so an existing entry refuses another in its place.
const SQLITE_TRIGGERS: [&str; 4] = [
    "CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log \
     BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
    "CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log \
     BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
    "CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log \
     WHEN EXISTS (SELECT 1 FROM audit_log WHERE seq = NEW.seq) \
     BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
    "CREATE TRIGGER audit_log_head AFTER INSERT ON audit_log \
     BEGIN UPDATE audit_head SET hash = NEW.hash WHERE seq = NEW.seq; END",
];

const POSTGRES_TRIGGERS: [&str; 4] = [
    "CREATE FUNCTION audit_log_refuse() RETURNS trigger LANGUAGE plpgsql AS \
     $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$",
    "CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log \
     FOR EACH STATEMENT EXECUTE FUNCTION audit_log_refuse()",
    "CREATE FUNCTION audit_log_head() RETURNS trigger LANGUAGE plpgsql AS \
     $$ BEGIN UPDATE audit_head SET hash = NEW.hash WHERE seq = NEW.seq; RETURN NULL; END $$",
    "CREATE TRIGGER audit_log_head AFTER INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_head()",
];

/// Dropping a table drops its triggers, not their functions.
const POSTGRES_FUNCTIONS: [&str; 2] = ["DROP FUNCTION audit_log_refuse()", "DROP FUNCTION audit_log_head()"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let log = Table::create()
            .table(AuditLog::Table)
            .col(sequence(backend))
            .col(big_integer(AuditLog::At))
            .col(uuid(AuditLog::OwnerId))
            .col(uuid_null(AuditLog::UserId))
            .col(text(AuditLog::Username))
            .col(uuid_null(AuditLog::LoginId))
            .col(text(AuditLog::Address))
            .col(text(AuditLog::Action))
            .col(uuid_null(AuditLog::ServerId))
            .col(text_null(AuditLog::ServerName))
            .col(text_null(AuditLog::Target))
            .col(text(AuditLog::Outcome))
            .col(text(AuditLog::Detail))
            .col(ColumnDef::new(AuditLog::Hash).blob().not_null())
            .to_owned();
        manager.create_table(log).await?;
        let whose = [("audit_log_by_owner", AuditLog::OwnerId), ("audit_log_by_server", AuditLog::ServerId)];
        for (name, column) in whose {
            let index = Index::create().name(name).table(AuditLog::Table).col(column).col(AuditLog::Seq).to_owned();
            manager.create_index(index).await?;
        }

        let head = Table::create()
            .table(AuditHead::Table)
            .col(small_integer(AuditHead::Id).primary_key())
            .col(big_integer(AuditHead::Seq))
            .col(ColumnDef::new(AuditHead::Hash).blob().not_null())
            .to_owned();
        manager.create_table(head).await?;
        let beginning = Query::insert()
            .into_table(AuditHead::Table)
            .columns([AuditHead::Id, AuditHead::Seq, AuditHead::Hash])
            .values_panic([1_i16.into(), 0_i64.into(), vec![0_u8; 32].into()])
            .to_owned();
        manager.execute(beginning).await?;

        let triggers = match backend {
            DatabaseBackend::Postgres => POSTGRES_TRIGGERS,
            _ => SQLITE_TRIGGERS,
        };
        for trigger in triggers {
            manager.get_connection().execute_unprepared(trigger).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(AuditLog::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(AuditHead::Table).to_owned()).await?;
        if manager.get_database_backend() == DatabaseBackend::Postgres {
            for function in POSTGRES_FUNCTIONS {
                manager.get_connection().execute_unprepared(function).await?;
            }
        }
        Ok(())
    }
}

/// With exactly this type it is SQLite's own row number, so that no other number can be used to replace a row.
fn sequence(backend: DatabaseBackend) -> ColumnDef {
    let mut column = ColumnDef::new(AuditLog::Seq);
    match backend {
        DatabaseBackend::Postgres => column.big_integer(),
        _ => column.custom("integer"),
    };
    column.not_null().primary_key().to_owned()
}

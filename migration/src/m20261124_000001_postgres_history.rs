//! The history on PostgreSQL in partitions: new samples in a table of their own, one partition per hour, and the blocks by tier
//! and time. SQLite is unchanged.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{DatabaseBackend, Statement};

#[derive(DeriveMigrationName)]
pub struct Migration;

/// Tiers by their numbers, and the hours of a partition of each. Samples are retained for days, so a partition has a day;
/// everything else for months, so it has the length of its longest blocks.
const TIERS: [(i16, i64); 5] = [(0, 24), (1, 768), (2, 768), (3, 768), (4, 768)];

/// Copying blocks may take any time.
const NO_TIMEOUT: &str = "SELECT set_config('statement_timeout', '0', true)";

const COLUMNS: &str = "server_id, tier, span, start, part, rows, first_at, last_at, data";

/// Already compressed, or deleted within the hour: PostgreSQL need not try.
const STORED_AS_IT_IS: &str = "ALTER COLUMN data SET STORAGE EXTERNAL";

/// Frees the name for the new table.
const ASIDE: [&str; 3] = [
    "ALTER TABLE history_blocks RENAME TO history_blocks_before",
    "ALTER INDEX history_blocks_pkey RENAME TO history_blocks_before_pkey",
    "ALTER INDEX history_blocks_by_age RENAME TO history_blocks_before_by_age",
];

const SAMPLES: &str = "CREATE TABLE history_samples (server_id uuid NOT NULL, hour bigint NOT NULL, at bigint NOT NULL, \
                       data bytea NOT NULL, PRIMARY KEY (server_id, hour, at)) PARTITION BY RANGE (hour)";

const PARTED: &str = "CREATE TABLE history_blocks (LIKE history_blocks_before INCLUDING STORAGE, \
                      PRIMARY KEY (server_id, tier, span, start, part)) PARTITION BY LIST (tier)";

/// Sealing and retention search all servers. One entry per block, not per part.
const BY_AGE: &str = "CREATE INDEX history_blocks_by_age ON history_blocks (span, start, server_id) WHERE part = 0";

const WHOLE: &str = "CREATE TABLE history_blocks (LIKE history_blocks_before INCLUDING STORAGE, \
                     PRIMARY KEY (server_id, tier, span, start, part))";

const WHOLE_BY_AGE: &str = "CREATE INDEX history_blocks_by_age ON history_blocks (span, tier, start, server_id, part)";

/// The first format of the history, which the service converts when it starts.
const SAMPLES_BACK: &str =
    "INSERT INTO samples (server_id, at, data) SELECT server_id, at, data FROM history_samples ON CONFLICT DO NOTHING";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() != DatabaseBackend::Postgres {
            return Ok(());
        }
        execute(manager, NO_TIMEOUT).await?;
        execute(manager, SAMPLES).await?;
        execute(manager, &format!("ALTER TABLE history_samples {STORED_AS_IT_IS}")).await?;
        for statement in ASIDE {
            execute(manager, statement).await?;
        }
        execute(manager, PARTED).await?;
        execute(manager, BY_AGE).await?;
        for (tier, width) in TIERS {
            let parent = format!("history_blocks_{tier}");
            let create =
                format!("CREATE TABLE {parent} (LIKE history_blocks INCLUDING ALL) PARTITION BY RANGE (start)");
            execute(manager, &create).await?;
            let attach = format!("ALTER TABLE history_blocks ATTACH PARTITION {parent} FOR VALUES IN ({tier})");
            execute(manager, &attach).await?;
            for start in starts(manager, tier, width).await? {
                let (until, name) = (start + width, format!("\"{parent}_{start}\""));
                execute(manager, &format!("CREATE TABLE {name} (LIKE {parent} INCLUDING ALL)")).await?;
                let copy = format!(
                    "INSERT INTO {name} ({COLUMNS}) SELECT {COLUMNS} FROM history_blocks_before \
                     WHERE span IN (0, 1, 2) AND tier = {tier} AND start >= {start} AND start < {until}"
                );
                execute(manager, &copy).await?;
                let attach =
                    format!("ALTER TABLE {parent} ATTACH PARTITION {name} FOR VALUES FROM ({start}) TO ({until})");
                execute(manager, &attach).await?;
            }
        }
        execute(manager, "DROP TABLE history_blocks_before").await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() != DatabaseBackend::Postgres {
            return Ok(());
        }
        execute(manager, NO_TIMEOUT).await?;
        for statement in ASIDE {
            execute(manager, statement).await?;
        }
        execute(manager, WHOLE).await?;
        let copy = format!("INSERT INTO history_blocks ({COLUMNS}) SELECT {COLUMNS} FROM history_blocks_before");
        execute(manager, &copy).await?;
        execute(manager, WHOLE_BY_AGE).await?;
        execute(manager, "DROP TABLE history_blocks_before").await?;
        // Prevents writes between the copy and the end.
        execute(manager, "LOCK TABLE history_samples IN ACCESS EXCLUSIVE MODE").await?;
        execute(manager, SAMPLES_BACK).await?;
        execute(manager, "DROP TABLE history_samples").await
    }
}

async fn execute(manager: &SchemaManager<'_>, statement: &str) -> Result<(), DbErr> {
    manager.get_connection().execute_unprepared(statement).await.map(|_| ())
}

/// The beginnings of the partitions that a tier's blocks need.
async fn starts(manager: &SchemaManager<'_>, tier: i16, width: i64) -> Result<Vec<i64>, DbErr> {
    let query = format!(
        "SELECT DISTINCT floor(start::numeric / {width})::bigint * {width} AS first FROM history_blocks_before \
         WHERE span IN (0, 1, 2) AND tier = {tier} ORDER BY first"
    );
    let rows = manager.get_connection().query_all_raw(Statement::from_string(DatabaseBackend::Postgres, query)).await?;
    rows.iter().map(|row| row.try_get("", "first")).collect()
}

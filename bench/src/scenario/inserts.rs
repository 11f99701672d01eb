//! Ways to write rows of samples into PostgreSQL, one statement after the other on one connection, in turns.

use std::fs;
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use entity::history_sample;
use sea_orm::sea_query::OnConflict;
use sea_orm::sqlx;
use sea_orm::{
    ActiveValue::Set, ConnectOptions, ConnectionTrait, Database, DatabaseBackend, DatabaseConnection, EntityTrait,
    Statement,
};
use uuid::Uuid;

use super::seconds;
use crate::cluster::Postgres;
use crate::process::Cpu;
use crate::report::{Report, progress, rounded};
use crate::service::ServiceOptions;
use crate::stats::median;

/// As the service's migration has it: samples are compressed already.
const TABLE: [&str; 3] = [
    "CREATE TABLE history_samples (server_id uuid NOT NULL, hour bigint NOT NULL, at bigint NOT NULL, \
        data bytea NOT NULL, PRIMARY KEY (server_id, hour, at)) PARTITION BY RANGE (hour)",
    "ALTER TABLE history_samples ALTER COLUMN data SET STORAGE EXTERNAL",
    "CREATE TABLE history_samples_now PARTITION OF history_samples DEFAULT",
];

const UNNEST: &str = "\
    INSERT INTO history_samples (server_id, hour, at, data) \
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bytea[]) ON CONFLICT DO NOTHING";

const COPY: &str = "COPY history_samples (server_id, hour, at, data) FROM STDIN (FORMAT binary)";

/// The header of a binary COPY: signature, flags, and the length of an absent extension. Source: PostgreSQL's documentation of
/// COPY, "Binary Format".
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Milliseconds of an hour.
const HOUR_MS: i64 = 3_600_000;

/// Bytes of a stored sample: the figure of `instances` without key, row header and index.
const DATA_BYTES: usize = 430;

/// Servers that take turns.
const SERVERS: u64 = 1_000;

#[derive(Debug, Args)]
pub struct InsertsArgs {
    /// Rows of a statement.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1000])]
    pub rows: Vec<usize>,
    /// Turns of each way; medians are shown.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Seconds of a turn.
    #[arg(long, default_value = "2", value_parser = seconds)]
    pub duration: Duration,
}

/// How rows are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `Entity::insert_many`: a VALUES list with a parameter a column and row.
    SeaOrm,
    /// One array per column, as the service does it.
    Unnest,
    /// The upper bound: without a check for conflicts, so that it fails for a repeated sample.
    Copy,
}

impl Way {
    const ALL: [Self; 3] = [Self::SeaOrm, Self::Unnest, Self::Copy];

    fn name(self) -> &'static str {
        match self {
            Self::SeaOrm => "SeaORM's insert_many",
            Self::Unnest => "UNNEST",
            Self::Copy => "COPY",
        }
    }
}

/// The time of a turn for each row.
struct Turn {
    rows_per_second: f64,
    client_us: f64,
    postgres_us: f64,
}

pub async fn run(options: &ServiceOptions, args: &InsertsArgs) -> anyhow::Result<()> {
    fs::create_dir_all(&options.work_dir).with_context(|| format!("cannot make {}", options.work_dir.display()))?;
    // PostgreSQL needs absolute paths, because it runs elsewhere.
    let postgres = Postgres::start(&options.work_dir.canonicalize()?).await?;
    let mut connect = ConnectOptions::new(postgres.url());
    connect.max_connections(1).sqlx_logging(false);
    let database = Database::connect(connect).await?;
    for statement in TABLE {
        database.execute_unprepared(statement).await?;
    }

    let mut rows = Rows::default();
    let mut report = Report::new("inserts: ways to write samples into PostgreSQL, one connection, commits durable");
    for &count in &args.rows {
        anyhow::ensure!((1..=10_000).contains(&count), "a statement has 1 to 10,000 rows here");
        let mut turns: [Vec<Turn>; 3] = Default::default();
        for round in 1..=args.rounds.max(1) {
            progress(format_args!("{count} rows a statement, round {round} of {}", args.rounds));
            for (way, turns) in Way::ALL.into_iter().zip(&mut turns) {
                turns.push(turn(&postgres, &database, way, count, args.duration, &mut rows).await?);
            }
        }
        for (way, turns) in Way::ALL.into_iter().zip(&turns) {
            let of = |figure: fn(&Turn) -> f64| {
                median(&turns.iter().map(figure).collect::<Vec<_>>()).map_or_else(|| "none".to_owned(), rounded)
            };
            let (rate, client, server) =
                (of(|turn| turn.rows_per_second), of(|turn| turn.client_us), of(|turn| turn.postgres_us));
            report.note(
                format!("{count} rows a statement, {}", way.name()),
                format!("{rate} rows/s; CPU a row: {client} µs here, {server} µs in PostgreSQL"),
            );
        }
    }
    let stored = postgres.number("SELECT count(*) FROM history_samples").await?;
    report.must_be_zero("rows that are not there", rows.made.abs_diff(stored));
    database.close().await?;
    report.finish()
}

async fn turn(
    postgres: &Postgres,
    database: &DatabaseConnection,
    way: Way,
    count: usize,
    duration: Duration,
    rows: &mut Rows,
) -> anyhow::Result<Turn> {
    // A checkpoint writes whole pages afterwards, which the one whose turn it is would pay for.
    database.execute_unprepared("CHECKPOINT").await?;
    let before = (Cpu::of(std::process::id())?, postgres.cpu()?);
    let (start, made) = (Instant::now(), rows.made);
    while start.elapsed() < duration {
        let batch = rows.take(count);
        match way {
            Way::SeaOrm => by_sea_orm(database, batch).await?,
            Way::Unnest => by_unnest(database, batch).await?,
            Way::Copy => by_copy(database, batch).await?,
        }
    }
    let (elapsed, count) = (start.elapsed(), (rows.made - made) as f64);
    let client = Cpu::of(std::process::id())?.since(before.0).total();
    let server = postgres.cpu()?.since(before.1).total();
    let a_row = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count;
    Ok(Turn { rows_per_second: count / elapsed.as_secs_f64(), client_us: a_row(client), postgres_us: a_row(server) })
}

fn by_sea_orm(
    database: &DatabaseConnection,
    rows: Vec<history_sample::Model>,
) -> impl Future<Output = Result<(), sea_orm::DbErr>> {
    let models = rows.into_iter().map(|row| history_sample::ActiveModel {
        server_id: Set(row.server_id),
        hour: Set(row.hour),
        at: Set(row.at),
        data: Set(row.data),
    });
    let insert = history_sample::Entity::insert_many(models).on_conflict(OnConflict::new().do_nothing().to_owned());
    async move { insert.exec_without_returning(database).await.map(|_| ()) }
}

async fn by_unnest(database: &DatabaseConnection, rows: Vec<history_sample::Model>) -> Result<(), sea_orm::DbErr> {
    let mut columns: (Vec<Uuid>, Vec<i64>, Vec<i64>, Vec<Vec<u8>>) = Default::default();
    for row in rows {
        columns.0.push(row.server_id);
        columns.1.push(row.hour);
        columns.2.push(row.at);
        columns.3.push(row.data);
    }
    let values = [columns.0.into(), columns.1.into(), columns.2.into(), columns.3.into()];
    database.execute_raw(Statement::from_sql_and_values(DatabaseBackend::Postgres, UNNEST, values)).await.map(|_| ())
}

async fn by_copy(database: &DatabaseConnection, rows: Vec<history_sample::Model>) -> Result<(), sqlx::Error> {
    let mut bytes = COPY_HEADER.to_vec();
    for row in &rows {
        bytes.extend(4_i16.to_be_bytes());
        field(&mut bytes, row.server_id.as_bytes());
        field(&mut bytes, &row.hour.to_be_bytes());
        field(&mut bytes, &row.at.to_be_bytes());
        field(&mut bytes, &row.data);
    }
    bytes.extend((-1_i16).to_be_bytes());
    let mut connection = database.get_postgres_connection_pool().acquire().await?;
    let mut copy = connection.copy_in_raw(COPY).await?;
    copy.send(bytes).await?;
    copy.finish().await.map(|_| ())
}

fn field(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend(i32::try_from(value.len()).unwrap_or(i32::MAX).to_be_bytes());
    bytes.extend(value);
}

/// Samples, each a moment after the one before.
#[derive(Debug, Default)]
struct Rows {
    made: u64,
}

impl Rows {
    fn take(&mut self, count: usize) -> Vec<history_sample::Model> {
        (0..count).map(|_| self.next()).collect()
    }

    /// Servers take turns, so that the rows' order in the index is that of a fleet.
    fn next(&mut self) -> history_sample::Model {
        let server = self.made % SERVERS;
        let at = i64::try_from(self.made / SERVERS).unwrap_or(i64::MAX);
        self.made += 1;
        let server_id = Uuid::from_u64_pair(server.wrapping_mul(0x9e37_79b9_7f4a_7c15), server);
        let mut data = vec![0; DATA_BYTES];
        fastrand::fill(&mut data);
        history_sample::Model { server_id, hour: at / HOUR_MS, at, data }
    }
}

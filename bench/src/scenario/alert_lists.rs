//! Lists and counts of alerts with a year of resolved alerts in the database, on SQLite and on PostgreSQL.

use std::time::Instant;

use anyhow::Context;
use clap::Args;
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, TransactionTrait};
use signalbox_protocol::Timestamp;

use crate::cluster::Postgres;
use crate::fixture::Fixture;
use crate::report::{Aim, Report, progress};
use crate::rest::Rest;
use crate::service::ServiceOptions;
use crate::stats::Latencies;

const DAY_MS: i64 = 86_400_000;
const YEAR_MS: i64 = 365 * DAY_MS;
/// What a page waits for, in milliseconds.
const SLOWEST_MEDIAN: f64 = 20.0;

#[derive(Debug, Args)]
pub struct AlertListsArgs {
    /// Alerts that were resolved within the last year.
    #[arg(long, default_value_t = 365_000)]
    pub alerts: i64,
    /// Servers that had them.
    #[arg(long, default_value_t = 20)]
    pub servers: usize,
    /// How often each question is asked.
    #[arg(long, default_value_t = 20)]
    pub turns: usize,
}

pub async fn run(options: &ServiceOptions, args: &AlertListsArgs) -> anyhow::Result<()> {
    let sqlite = measure("SQLite", options, None, args).await?.finish();
    let postgres = Postgres::start(&options.work_dir).await?;
    let mut options = options.clone();
    options.service_arg.push(format!("--database-url={}", postgres.url()));
    sqlite.and(measure("PostgreSQL", &options, Some(&postgres), args).await?.finish())
}

/// Its name in the report, its path, and its parameters.
type Question<'a> = (&'a str, &'a str, Vec<(&'a str, String)>);

async fn measure(
    database: &str,
    options: &ServiceOptions,
    postgres: Option<&Postgres>,
    args: &AlertListsArgs,
) -> anyhow::Result<Report> {
    let fixture = Fixture::start(options, args.servers).await?;
    progress(format_args!("writing {} alerts to {database}", args.alerts));
    let file = fixture.service.data_folder().join("signalbox.db");
    let url = postgres.map_or_else(|| format!("sqlite://{}", file.display()), Postgres::url);
    let now = Timestamp::now().as_millis();
    write(&url, args, now).await?;

    let ago = |days: i64| Timestamp::from_millis(now - days * DAY_MS).to_string();
    let listed =
        |query: &[(&'static str, &str)]| query.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    let server_id = fixture.fleet.first().context("there is no server")?.server_id.to_string();
    let (day, month, half, most) = (&ago(1), &ago(30), &ago(182), &ago(300));
    let questions: [Question<'_>; 21] = [
        ("summary", "/alerts/summary", vec![]),
        ("all", "/alerts", vec![]),
        ("active", "/alerts", listed(&[("status", "active")])),
        ("resolved", "/alerts", listed(&[("status", "resolved")])),
        ("critical", "/alerts", listed(&[("severity", "critical")])),
        ("info, of which there are three", "/alerts", listed(&[("severity", "info")])),
        ("a metric that had none", "/alerts", listed(&[("metric_type", "memory")])),
        ("of a server, info", "/alerts", listed(&[("server_id", &server_id), ("severity", "info")])),
        ("since yesterday", "/alerts", listed(&[("since", day)])),
        ("since 30 days", "/alerts", listed(&[("since", month)])),
        ("since 30 days, until now", "/alerts", listed(&[("since", month), ("until", &ago(0))])),
        ("since 30 days, critical", "/alerts", listed(&[("since", month), ("severity", "critical")])),
        ("since 182 days", "/alerts", listed(&[("since", half)])),
        ("since 182 days, warning", "/alerts", listed(&[("since", half), ("severity", "warning")])),
        ("since 300 days", "/alerts", listed(&[("since", most)])),
        ("since 300 days, critical", "/alerts", listed(&[("since", most), ("severity", "critical")])),
        ("since 300 days, info", "/alerts", listed(&[("since", most), ("severity", "info")])),
        ("until 30 days ago", "/alerts", listed(&[("until", month)])),
        ("until 300 days ago", "/alerts", listed(&[("until", most)])),
        ("until 300 days ago, critical", "/alerts", listed(&[("until", most), ("severity", "critical")])),
        (
            "of a server, a day 182 days ago",
            "/alerts",
            listed(&[("server_id", &server_id), ("since", half), ("until", &ago(181))]),
        ),
    ];
    let mut report = Report::new(format!("alert-lists: beside {} alerts on {database}", args.alerts));
    for (name, path, query) in questions {
        let summary = ask(&fixture.rest, path, &query, args.turns).await?.summary().context("nothing was asked")?;
        let aim = Aim::AtMost(SLOWEST_MEDIAN);
        report.figure(format!("{name}, median, ms"), summary.p50.as_secs_f64() * 1_000.0, aim);
        report.note(name, summary);
    }
    Ok(report)
}

async fn ask(rest: &Rest, path: &str, query: &[(&str, String)], turns: usize) -> anyhow::Result<Latencies> {
    let mut latencies = Latencies::default();
    for _ in 0..turns {
        let began = Instant::now();
        let answer = rest.request(path).query(query).send().await?.error_for_status()?;
        answer.bytes().await?;
        latencies.record(began.elapsed());
    }
    Ok(latencies)
}

/// Alerts of every server, spread over the year before `now`, all resolved after a minute but for one in fifty, which took
/// a day. A tenth of them are critical, and three of the oldest are the only ones that inform.
async fn write(url: &str, args: &AlertListsArgs, now: i64) -> anyhow::Result<()> {
    let database = Database::connect(url).await?;
    let id = match url.starts_with("sqlite:") {
        true => "unhex(printf('%012x70008000%012x', at, k))",
        false => "CAST(lpad(to_hex(at), 12, '0') || '70008000' || lpad(to_hex(k), 12, '0') AS uuid)",
    };
    let of_server = args.alerts / i64::try_from(args.servers.max(1))?;
    let every_ms = YEAR_MS / of_server.max(1);
    let usual = of_server * i64::try_from(args.servers)? - 3;
    let lasts = format!("CASE WHEN k % 50 = 1 THEN {DAY_MS} ELSE 60000 END");
    let statement = format!(
        "WITH RECURSIVE numbers (i) AS \
         (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < {of_server}), \
         every (server_id, owner_id, at, k) AS (SELECT servers.id, servers.owner_id, {now} - i * {every_ms}, \
         row_number() OVER () FROM servers CROSS JOIN numbers) \
         INSERT INTO alerts (id, owner_id, server_id, threshold_id, metric_type, threshold_value, comparison, \
         duration_seconds, severity, status, value, peak_value, message, is_silenced, sample_at, triggered_at, \
         resolved_at, resolved_by, rearmed_at, threshold_revision) \
         SELECT {id}, owner_id, server_id, server_id, 'cpu', 90, 'gt', 0, \
         CASE WHEN k > {usual} THEN 'info' WHEN k % 10 = 0 THEN 'critical' ELSE 'warning' END, 'resolved', 97.5, 99.5, \
         'cpu is high', FALSE, at, at, at + {lasts}, 'recovered', at + {lasts}, 0 FROM every"
    );
    if url.starts_with("sqlite:") {
        database.execute_unprepared(&statement).await.context("cannot write alerts")?;
    } else {
        write_to_postgres(&database, &statement).await.context("cannot write alerts")?;
    }
    database.close().await?;
    Ok(())
}

/// In one transaction each alert would create another version of the row that counts its kind, and every version would be read
/// for the next alert. So they are counted afterwards.
async fn write_to_postgres(database: &DatabaseConnection, statement: &str) -> anyhow::Result<()> {
    let kind = "owner_id, server_id, threshold_id, metric_type, severity, status";
    let transaction = database.begin().await?;
    transaction.execute_unprepared("ALTER TABLE alerts DISABLE TRIGGER alert_counts_insert").await?;
    transaction.execute_unprepared(statement).await?;
    let count = format!("INSERT INTO alert_counts ({kind}, count) SELECT {kind}, COUNT(*) FROM alerts GROUP BY {kind}");
    transaction.execute_unprepared(&count).await?;
    transaction.execute_unprepared("ALTER TABLE alerts ENABLE TRIGGER alert_counts_insert").await?;
    transaction.commit().await?;
    database.execute_unprepared("VACUUM ANALYZE alerts").await?;
    Ok(())
}

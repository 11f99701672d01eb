//! The history of metrics compared with other stores: the same realistic samples in each, their bytes on disk, and the same
//! queries.

mod check;
mod ours;
mod table;
mod tables;
mod timing;

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use signalbox_protocol::Timestamp;
use tokio::time::sleep;

use self::ours::Signalbox;
pub use self::ours::wait_until_settled;
use self::timing::{Asked, ask, may_drop_page_cache};
use super::seconds;
use crate::data::{Dataset, hour_of};
use crate::peer::{Prometheus, Victoria};
use crate::question::{Kind, Mode};
use crate::report::progress;
use crate::service::ServiceOptions;
use crate::stop::StopSource;
use crate::store::{Checked, Fed, Note, Store, Stored};

#[derive(Debug, Args)]
pub struct HistoryArgs {
    #[arg(long, default_value_t = 50)]
    pub servers: usize,
    /// Days of samples, up to the hour that is not over yet.
    #[arg(long, default_value_t = 7.0)]
    pub days: f64,
    /// Seconds between two samples.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub interval: Duration,
    /// Days of samples a minute apart of one server, as a second set of data; 0 leaves it out.
    #[arg(long, default_value_t = 365.0)]
    pub year_days: f64,
    /// Questions of each kind in each mode.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    pub questions: u16,
    /// How many of the last days of the first set Prometheus gets: its text files grow to two gigabytes a day, one file
    /// at a time.
    #[arg(long, default_value_t = 7.0)]
    pub prometheus_days: f64,
    /// A store that is left out; may be given more than once.
    #[arg(long)]
    pub without: Vec<Which>,
    /// Samples a second of the server that hands over old ones while questions are asked.
    #[arg(long, default_value_t = 5000.0)]
    pub backfill_rate: f64,
    /// How long the service may take to seal everything, in seconds.
    #[arg(long, default_value = "1800", value_parser = seconds)]
    pub settle_timeout: Duration,
    /// The same seed gives the same samples but for their times.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
}

/// One of the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    Victoria,
    Prometheus,
    Signalbox,
}

/// Samples are sent for this long before the first query.
const LOAD_AHEAD: Duration = Duration::from_secs(5);

/// A set of data and its queries.
struct Set {
    title: String,
    data: Dataset,
    kinds: &'static [Kind],
    modes: &'static [Mode],
    prometheus_days: f64,
}

/// The measurements of one store.
struct Measured {
    name: &'static str,
    fed: Fed,
    settled: Vec<Note>,
    stored: Stored,
    checked: Checked,
    asked: Vec<Asked>,
    /// How much arrived during the queries.
    load: Option<String>,
}

pub async fn run(options: &ServiceOptions, args: &HistoryArgs) -> anyhow::Result<()> {
    anyhow::ensure!(args.servers > 0 && args.days * 24.0 >= 1.0, "there must be a server and an hour at least");
    let making = table::cost_of_making(args.seed)?;
    let mut results = vec![run_set(options, args, &week(args)?, &making).await];
    if args.year_days > 0.0 {
        results.push(run_set(&keeping(options, args.year_days), args, &year(args), &making).await);
    }
    // Both are wanted, also when the first has a fault.
    results.into_iter().collect()
}

fn week(args: &HistoryArgs) -> anyhow::Result<Set> {
    let interval_ms = i64::try_from(args.interval.as_millis())?.max(1);
    Ok(Set {
        title: format!(
            "history: {} servers, {} days, a sample every {} s",
            args.servers,
            args.days,
            interval_ms / 1000
        ),
        data: Dataset::ending_at(hour_of(Timestamp::now()), args.seed, args.servers, args.days, interval_ms),
        kinds: &[Kind::OneSeries, Kind::TenSeries, Kind::EverySeries],
        modes: &[Mode::Warm, Mode::Kept, Mode::Cold, Mode::Fed],
        prometheus_days: args.prometheus_days,
    })
}

fn year(args: &HistoryArgs) -> Set {
    Set {
        title: format!("history: one server, {} days, a sample a minute", args.year_days),
        // One that has something to do.
        data: Dataset::ending_at(hour_of(Timestamp::now()), args.seed + 1, 1, args.year_days, 60_000),
        kinds: &[Kind::OneSeriesOverAll, Kind::EverySeriesOverAll],
        modes: &[Mode::Warm, Mode::Kept, Mode::Cold],
        prometheus_days: args.year_days,
    }
}

/// The same for a service that receives samples this many days late: it drops what is older than the retention of minutes.
fn keeping(options: &ServiceOptions, days: f64) -> ServiceOptions {
    const SPARE_DAYS: u32 = 35;
    /// For which quarters are kept by default, which may not be less than the minutes are.
    const LEAST_DAYS: u32 = 365;

    let days = (days.ceil() as u32).saturating_add(SPARE_DAYS).max(LEAST_DAYS);
    let mut options = options.clone();
    for name in ["SIGNALBOX_RETENTION_1M", "SIGNALBOX_RETENTION_15M"] {
        options.variables.push((name, days.to_string().into()));
    }
    options
}

async fn run_set(options: &ServiceOptions, args: &HistoryArgs, set: &Set, making: &str) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    let mut left_out = Vec::new();
    let mut keep = |name: &str, measured: anyhow::Result<Measured>| match measured {
        Ok(measured) => peers.push(measured),
        Err(error) => left_out.push((format!("{name} is left out"), format!("{error:#}"))),
    };
    // One at a time: they share the cores.
    if !args.without.contains(&Which::Victoria) {
        keep(Victoria::NAME, measure_victoria(options, args, set).await);
    }
    if !args.without.contains(&Which::Prometheus) {
        keep(Prometheus::NAME, measure_prometheus(options, args, set).await);
    }
    let ours = if args.without.contains(&Which::Signalbox) {
        None
    } else {
        Some(measure_ours(options, args, set).await.context("the service")?)
    };
    table::make(set, making, &peers, ours.as_ref(), left_out).finish()
}

async fn measure_ours(options: &ServiceOptions, args: &HistoryArgs, set: &Set) -> anyhow::Result<Measured> {
    let (servers, patience) = (set.data.servers, args.settle_timeout);
    measure(Signalbox::start(options, servers, patience, args.backfill_rate).await?, set, args).await
}

async fn measure_victoria(options: &ServiceOptions, args: &HistoryArgs, set: &Set) -> anyhow::Result<Measured> {
    measure(Victoria::start(&options.work_dir, args.backfill_rate).await?, set, args).await
}

async fn measure_prometheus(options: &ServiceOptions, args: &HistoryArgs, set: &Set) -> anyhow::Result<Measured> {
    measure(Prometheus::new(&options.work_dir, set.prometheus_days)?, set, args).await
}

async fn measure<S: Store>(mut store: S, set: &Set, args: &HistoryArgs) -> anyhow::Result<Measured> {
    let data = &set.data;
    progress(format_args!("{}: feeding {} samples", S::NAME, data.all_samples()));
    let fed = store.feed(data).await?;
    progress(format_args!("{}: fed in {:.1} s; settling", S::NAME, fed.elapsed.as_secs_f64()));
    let settled = store.settle().await?;
    let stored = store.stored().await?;
    progress(format_args!("{}: {} bytes on disk; comparing", S::NAME, stored.bytes));
    let checked = store.check(data, &fed).await?;
    let mut asked = Vec::new();
    let mut load = None;
    for mode in set.modes.iter().copied() {
        if (mode == Mode::Kept && !S::KEEPS_ANSWERS) || (mode == Mode::Cold && !may_drop_page_cache()) {
            continue;
        }
        progress(format_args!("{}: asking, {mode}", S::NAME));
        // A restart for each query of a single server would be most of the run.
        let count = if mode == Mode::Cold { args.questions.min(data.servers as u16 * 20) } else { args.questions };
        let (source, stop) = StopSource::new();
        let tasks = if mode == Mode::Fed { store.start_load(data, &stop).await? } else { None };
        if mode == Mode::Fed && tasks.is_none() {
            continue;
        }
        let start = Instant::now();
        if tasks.is_some() {
            sleep(LOAD_AHEAD).await;
        }
        for kind in set.kinds {
            asked.push(ask(&mut store, *kind, mode, count.into(), (data, &fed)).await?);
        }
        source.stop();
        if let Some(tasks) = tasks {
            let samples: u64 = super::join_all(tasks).await?.into_iter().sum::<anyhow::Result<u64>>()?;
            load = Some(format!("{samples} samples in {:.1} s", start.elapsed().as_secs_f64()));
        }
    }
    Ok(Measured { name: S::NAME, fed, settled, stored, checked, asked, load })
}

//! Writes the past of simulated servers in the formats of the history, as if the service had recorded and sealed it.
//!
//! The page must be full at once, so the newest comes first: the samples of the last hours of every server, then its month in
//! quarters of an hour, then the minutes of the last week, day by day. What is computed runs on a blocking thread, one server
//! at a time, so that the service stays quick.

use std::sync::Arc;

use signalbox_history::block::{self, BlockError};
use signalbox_history::frame::{Frame, Granularity, Row};
use signalbox_history::metric::Series;
use signalbox_history::processes::{self, At};
use signalbox_history::rollup;
use signalbox_history::shape::Shape;
use uuid::Uuid;

use super::cast::Machine;
use super::course::Course;
use super::gauges::{open, series, values};
use super::incidents::is_heard;
use super::processes::top;
use crate::metrics::archive::{HOUR_MS, MINUTE_MS, QUARTER_MS, block_key, hour_of, start_ms};
use crate::store::history::{Block, BlockInfo, Sealing, Span, Tier};
use crate::store::{Store, StoreError};

/// Days of history.
pub const DAYS: i64 = 30;

/// Days before today whose minutes are written. Older charts show quarters of an hour, which is what they have room for.
const MINUTE_DAYS: i64 = 7;

/// Hours of which every sample is written, in addition to the present one.
const SAMPLE_HOURS: i64 = 2;

/// Servers with a month of history, as the help of `--fleet` says. A larger fleet is there to see many servers, not the past of
/// each.
const MAX_WITH_MONTH: usize = 48;

/// How far apart samples are: those that are written, those that only become minutes, and those that only become quarters.
const SAMPLE_MS: i64 = 10_000;
const FOR_MINUTES_MS: i64 = 20_000;
const FOR_QUARTERS_MS: i64 = 300_000;

/// How far apart lists of processes are.
const LIST_MS: i64 = 300_000;

const DAY_HOURS: i64 = 24;

/// Why the past could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Block(#[from] BlockError),
    #[error("the work was interrupted")]
    Interrupted,
}

/// A server and its machine.
pub type Simulated = (Uuid, Arc<Machine>);

/// What makes the past of one server.
struct Author {
    course: Course,
    machine: Arc<Machine>,
    series: Vec<Arc<Series>>,
    shape: Option<Arc<Shape>>,
}

/// Writes everything, the newest first. Returns how many servers have the whole month.
pub async fn write(store: &Store, course: Course, servers: &[Simulated]) -> Result<usize, PastError> {
    for server in servers {
        seal(store, course, server, Author::today).await?;
    }
    let with_month = servers.get(..MAX_WITH_MONTH).unwrap_or(servers);
    for server in with_month {
        seal(store, course, server, Author::month).await?;
    }
    for ago in 1..=MINUTE_DAYS {
        for server in with_month {
            seal(store, course, server, move |author| author.minutes_of_day(ago)).await?;
        }
    }
    Ok(with_month.len())
}

/// Makes blocks on a blocking thread, and inserts them.
async fn seal(
    store: &Store,
    course: Course,
    (server_id, machine): &Simulated,
    make: impl FnOnce(&mut Author) -> Result<Vec<Block>, BlockError> + Send + 'static,
) -> Result<(), PastError> {
    let series = series(machine);
    let mut author = Author { course, machine: machine.clone(), series, shape: None };
    let made = tokio::task::spawn_blocking(move || make(&mut author));
    let blocks = made.await.map_err(|_| PastError::Interrupted)??;
    if !blocks.is_empty() {
        // A start that was ended before its history was complete has written some of them.
        let replaced = blocks.iter().map(|block| store.replaced(block.info.key, None)).collect();
        store.seal(&[Sealing { blocks, replaced, ..Sealing::of(*server_id) }]).await?;
    }
    Ok(())
}

impl Author {
    /// The sample of a time as a row; none while the agent was not heard.
    fn row(&mut self, at_ms: i64) -> Option<Row> {
        if !is_heard(&self.machine, self.course.hours(at_ms)) {
            return None;
        }
        let mut sample = self.course.sample(&self.machine, at_ms);
        sample.round();
        let open = open(&self.series, &values(self.course, &self.machine, at_ms));
        let known = self.shape.take().filter(|shape| shape.fits(&sample, &open));
        let shape = known.unwrap_or_else(|| Arc::new(Shape::with_open(&sample, &open)));
        self.shape = Some(shape.clone());
        Some(Row::with_open(&sample, &open, shape))
    }

    /// The rows from `from` until before `until`, this far apart.
    fn rows(&mut self, (from, until): (i64, i64), apart_ms: i64) -> Vec<Row> {
        // Not at full seconds: real agents are started at any time.
        let offset = (self.machine.seed % 997).cast_signed();
        let places = from.div_euclid(apart_ms)..=until.div_euclid(apart_ms);
        let times = places.map(|place| place * apart_ms + offset).filter(|at| (from..until).contains(at));
        times.filter_map(|at| self.row(at)).collect()
    }

    fn lists(&self, (from, until): (i64, i64), apart_ms: i64) -> Vec<At> {
        let times = (from.div_euclid(apart_ms)..=until.div_euclid(apart_ms)).map(|place| place * apart_ms);
        let heard = |at: &i64| (from..until).contains(at) && is_heard(&self.machine, self.course.hours(*at));
        times.filter(heard).map(|at| (at, top(&self.machine, &self.course.sample(&self.machine, at)))).collect()
    }

    /// Today, hour by hour: its minutes, and of the last hours every sample.
    fn today(&mut self) -> Result<Vec<Block>, BlockError> {
        let now = hour_of(self.course.began_ms);
        let first = Span::Day.start_of(now).min(now - SAMPLE_HOURS);
        let mut blocks = Vec::new();
        let mut before: Option<Row> = None;
        for hour in first..=now {
            let range = (start_ms(hour), start_ms(hour + 1).min(self.course.began_ms));
            let has_samples = hour >= now - SAMPLE_HOURS;
            let rows = self.rows(range, if has_samples { SAMPLE_MS } else { FOR_MINUTES_MS });
            let minutes = rollup::roll(&rows, Granularity::Raw, MINUTE_MS, before.take());
            if has_samples {
                blocks.extend(block_of(Tier::Raw, Span::Hour, hour, &rows)?);
            }
            // The minutes of an hour before midnight are in the block of their day.
            if hour >= Span::Day.start_of(now) {
                blocks.extend(block_of(Tier::Minute, Span::Hour, hour, &minutes)?);
                let apart = if has_samples { MINUTE_MS } else { LIST_MS };
                blocks.extend(block_of_lists(Span::Hour, hour, &self.lists(range, apart))?);
            }
            before = rows.last().cloned();
        }
        Ok(blocks)
    }

    /// The days before today in quarters of an hour and in hours.
    fn month(&mut self) -> Result<Vec<Block>, BlockError> {
        let today = Span::Day.start_of(hour_of(self.course.began_ms));
        let mut blocks = Vec::new();
        let mut before: Option<Row> = None;
        for ago in (1..=DAYS).rev() {
            let day = today - ago * DAY_HOURS;
            let rows = self.rows((start_ms(day), start_ms(day + DAY_HOURS)), FOR_QUARTERS_MS);
            let quarters = rollup::roll(&rows, Granularity::Raw, QUARTER_MS, before.take());
            let hours = rollup::roll(&quarters, Granularity::Rolled, HOUR_MS, None);
            blocks.extend(block_of(Tier::Quarter, Span::Day, day, &quarters)?);
            blocks.extend(block_of(Tier::Hour, Span::Day, day, &hours)?);
            before = rows.last().cloned();
        }
        Ok(blocks)
    }

    /// The minutes of one day before today, and its processes.
    fn minutes_of_day(&mut self, ago: i64) -> Result<Vec<Block>, BlockError> {
        let day = Span::Day.start_of(hour_of(self.course.began_ms)) - ago * DAY_HOURS;
        let range = (start_ms(day), start_ms(day + DAY_HOURS));
        let before = self.row(range.0 - FOR_MINUTES_MS);
        let rows = self.rows(range, FOR_MINUTES_MS);
        let minutes = rollup::roll(&rows, Granularity::Raw, MINUTE_MS, before);
        let mut blocks = Vec::new();
        blocks.extend(block_of(Tier::Minute, Span::Day, day, &minutes)?);
        blocks.extend(block_of_lists(Span::Day, day, &self.lists(range, LIST_MS))?);
        Ok(blocks)
    }
}

/// Rows as a block; none without rows.
fn block_of(tier: Tier, span: Span, hour: i64, rows: &[Row]) -> Result<Option<Block>, BlockError> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
    let granularity = if tier == Tier::Raw { Granularity::Raw } else { Granularity::Rolled };
    let key = block_key(tier, span, hour);
    let info = BlockInfo { key, rows: rows.len() as i64, first_at: first.at, last_at: last.at };
    let parts = block::write(Frame::from_rows(granularity, rows))?;
    Ok(Some(Block { info, parts: parts.into_iter().enumerate().collect() }))
}

/// Lists of processes as a block; none without lists.
fn block_of_lists(span: Span, hour: i64, lists: &[At]) -> Result<Option<Block>, BlockError> {
    let (Some((first_at, _)), Some((last_at, _))) = (lists.first(), lists.last()) else { return Ok(None) };
    let key = block_key(Tier::Processes, span, hour);
    let info = BlockInfo { key, rows: lists.len() as i64, first_at: *first_at, last_at: *last_at };
    Ok(Some(Block { info, parts: [(0, processes::write(lists)?)].into() }))
}

#[cfg(test)]
mod tests {
    use super::super::cast::fleet;
    use super::*;

    /// 03:40 UTC, so that today has some hours.
    const COURSE: Course = Course { began_ms: 20_833 * 86_400_000 + 13_200_000 };

    fn author(machine: Machine) -> Author {
        Author { course: COURSE, series: series(&machine), machine: Arc::new(machine), shape: None }
    }

    #[test]
    fn the_month_has_a_block_of_each_day() {
        let blocks = author(fleet(1).remove(0)).month().unwrap();

        let quarters: Vec<_> = blocks.iter().filter(|block| block.info.key.tier == Tier::Quarter).collect();
        assert_eq!(quarters.len(), DAYS as usize);
        assert!(quarters.iter().all(|block| block.info.rows == 96));
    }

    #[test]
    fn today_ends_when_the_demo_begins() {
        let blocks = author(fleet(1).remove(0)).today().unwrap();

        let last = blocks.iter().map(|block| block.info.last_at).max().unwrap();
        assert!((COURSE.began_ms - SAMPLE_MS..COURSE.began_ms).contains(&last));
        let raw: Vec<i64> = blocks.iter().filter(|it| it.info.key.tier == Tier::Raw).map(|it| it.info.rows).collect();
        assert_eq!(raw, [360, 360, 240]);
    }

    #[test]
    fn a_server_that_is_away_has_no_rows() {
        let away = fleet(24).into_iter().find(|machine| machine.incident == super::super::cast::Incident::Offline);

        let blocks = author(away.unwrap()).today().unwrap();

        assert!(blocks.is_empty(), "{:?}", blocks.first().map(|block| block.info));
    }
}

//! An open range, read in steps.

use std::collections::VecDeque;

use signalbox_history::frame::{Column, Frame, Granularity, Row};
use signalbox_history::open::Measured;
use signalbox_history::rollup::{self, Downsampler};
use signalbox_protocol::Timestamp;

use super::load::{Loader, together};
use super::plan::{Inventory, Source, Step, sources_of};
use super::resolution::TierWidth;
use super::wanted::Selection;
use super::{History, HistoryError, PLANS, TimeRange};
use crate::shares::Permit;
use crate::store::history::Tier;

/// Points of a page.
const PAGE: usize = 256;

/// Values of a page: sixteen samples with a thousand containers, which are a megabyte of text.
const PAGE_CELLS: usize = 64 * 1024;

/// One point of a range: a sample, or the mean of many.
pub struct Point {
    row: Row,
    granularity: Granularity,
}

impl Point {
    /// Returns its time, or the start of its bucket.
    pub fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.row.at)
    }

    pub fn measured(&self) -> Measured {
        self.row.measured(self.granularity)
    }

    /// Returns its columns with their values as stored: the mean of a gauge, the last value of all others.
    pub fn values(&self) -> impl Iterator<Item = (Column, i64)> {
        let mut rest = self.row.values.iter().copied();
        self.row.shape.slots().map(move |slot| {
            let first = rest.next().unwrap_or_default();
            (1..self.granularity.stats(slot.field)).for_each(|_| _ = rest.next());
            (Column::from(slot), first)
        })
    }
}

/// An open range. Holds at most some hours or days of it in memory.
pub struct Reader {
    history: History,
    loader: Loader,
    range: TimeRange,
    tier: Tier,
    width_ms: Option<i64>,
    steps: VecDeque<Step>,
    /// Frames that are loaded and not returned yet.
    frames: VecDeque<Frame>,
    spacing_ms: i64,
    /// The remaining rows of the present frame, the next one last.
    rows: Vec<Row>,
    granularity: Granularity,
    downsampler: Option<Downsampler>,
    /// Its place among the answers of its account; `None` for the service itself.
    place: Option<Permit>,
}

impl Reader {
    pub(super) async fn open(
        history: History,
        loader: Loader,
        inventory: Inventory,
        range: TimeRange,
        TierWidth { tier, width_ms }: TierWidth,
    ) -> Result<Self, HistoryError> {
        let steps = steps(&history, &inventory, tier).into();
        let mut reader = Self {
            history,
            loader,
            range,
            tier,
            width_ms,
            steps,
            frames: VecDeque::new(),
            spacing_ms: rollup::spacing_ms(&[]),
            rows: Vec::new(),
            granularity: Granularity::Raw,
            downsampler: width_ms.map(Downsampler::new),
            place: None,
        };
        reader.fill().await?;
        if let Some(frame) = reader.frames.iter().find(|frame| frame.granularity == Granularity::Raw) {
            reader.spacing_ms = rollup::spacing_ms(&frame.times);
        }
        let spacing_ms = reader.spacing_ms;
        reader.downsampler.iter_mut().for_each(|downsampler| downsampler.set_spacing(spacing_ms));
        Ok(reader)
    }

    pub(super) fn with_place(self, place: Option<Permit>) -> Self {
        Self { place, ..self }
    }

    /// Returns its place, for what was made of it.
    pub fn into_place(self) -> Option<Permit> {
        self.place
    }

    /// Returns the seconds between points: the width of the buckets, or the usual distance of samples.
    pub fn resolution_seconds(&self) -> i64 {
        self.width_ms.map_or_else(|| ((self.spacing_ms + 500) / 1000).max(1), |width| width / 1000)
    }

    /// Returns the width of the buckets in milliseconds; `None` if the answer has every sample.
    pub fn width_ms(&self) -> Option<i64> {
        self.width_ms
    }

    /// Returns the usual distance of the samples in milliseconds.
    pub fn spacing_ms(&self) -> i64 {
        self.spacing_ms
    }

    /// Returns the columns for which it was opened.
    pub fn wanted(&self) -> Selection {
        self.loader.wanted.clone()
    }

    /// Returns how many blocks could not be read so far.
    pub fn damaged_blocks(&self) -> usize {
        self.loader.wanted.damaged_blocks()
    }

    /// Returns the next frame of the range; `None` at its end. Buckets at the ends of the range are whole.
    pub async fn next_frame(&mut self) -> Result<Option<Frame>, HistoryError> {
        if self.frames.is_empty() {
            self.fill().await?;
        }
        Ok(self.frames.pop_front())
    }

    /// Returns the next points, oldest first; empty at the end.
    pub async fn next_page(&mut self) -> Result<Vec<Point>, HistoryError> {
        let (mut points, mut cells) = (Vec::new(), 0);
        let rolled = |row: Row| Point { row, granularity: Granularity::Rolled };
        while points.len() < PAGE && (points.is_empty() || cells < PAGE_CELLS) {
            let Some(row) = self.rows.pop() else {
                let Some(frame) = self.next_frame().await? else {
                    let last = self.downsampler.take().and_then(Downsampler::finish);
                    points.extend(last.map(rolled));
                    break;
                };
                self.begin(frame).await?;
                continue;
            };
            cells += row.values.len();
            match &mut self.downsampler {
                None => points.push(Point { row, granularity: self.granularity }),
                Some(downsampler) => points.extend(downsampler.add(&row, self.granularity).map(rolled)),
            }
        }
        Ok(points)
    }

    /// Splits a frame into rows.
    async fn begin(&mut self, frame: Frame) -> Result<(), HistoryError> {
        if frame.is_lead {
            let last = frame.rows().pop();
            self.downsampler.iter_mut().for_each(|downsampler| downsampler.begin_after(last.clone()));
            return Ok(());
        }
        self.granularity = frame.granularity;
        if let Some(downsampler) = &mut self.downsampler
            && frame.granularity == Granularity::Raw
        {
            downsampler.learn_spacing(frame.times.iter().copied());
        }
        // A day of samples is a million values.
        let rows = tokio::task::spawn_blocking(move || {
            let mut rows = frame.rows();
            rows.reverse();
            rows
        });
        self.rows = rows.await.map_err(|_| HistoryError::Interrupted)?;
        Ok(())
    }

    /// Loads the next steps that are not empty.
    async fn fill(&mut self) -> Result<(), HistoryError> {
        let mut plans = 0;
        while self.frames.is_empty() {
            let steps = self.steps.make_contiguous();
            let count = together(steps);
            let Some(next) = steps.get(..count).filter(|next| !next.is_empty()) else { return Ok(()) };
            let from = next.iter().map(|step| step.from).min().unwrap_or_default();
            // What was loaded since the last step, here and for others, may be too much by now.
            self.history.until_there_is_room().await?;
            let leads_in = self.tier != Tier::Raw && next.first().is_some_and(|step| step.source == Source::Samples);
            match self.loader.load(next).await? {
                Some(frames) => {
                    self.steps.drain(..count);
                    if leads_in && !frames.is_empty() {
                        self.frames.extend(self.loader.lead(from).await?);
                    }
                    let (from, until) = (self.range.start.as_millis(), self.range.end.as_millis().saturating_add(1));
                    let within = frames.into_iter().map(|frame| frame.into_between(from, until));
                    self.frames.extend(within.filter(|frame| !frame.times.is_empty()));
                }
                None => {
                    plans += 1;
                    if plans >= PLANS {
                        return Err(HistoryError::Restless);
                    }
                    let inventory =
                        self.history.inventory(self.loader.server_id, self.range, sources_of(self.tier)).await?;
                    let rest = steps_from(&self.history, &inventory, self.tier, from);
                    self.steps = rest.into();
                }
            }
        }
        Ok(())
    }
}

fn steps(history: &History, inventory: &Inventory, tier: Tier) -> Vec<Step> {
    match tier {
        Tier::Raw => inventory.samples(),
        tier => inventory.tier(tier, history.cutoffs().raw),
    }
}

/// Returns the steps from an hour on.
fn steps_from(history: &History, inventory: &Inventory, tier: Tier, from: i64) -> Vec<Step> {
    let rest = steps(history, inventory, tier).into_iter().filter(|step| step.until > from);
    rest.map(|step| Step { from: step.from.max(from), ..step }).collect()
}

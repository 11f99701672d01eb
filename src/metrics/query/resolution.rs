//! Chooses the resolution of an answer: as fine as requested, as the number of points allows, and as retention allows.

use signalbox_history::rollup::bucket_start;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::plan::{Inventory, Source, Step};
use super::wanted::Selection;
use super::{History, HistoryError, Resolution, TimeRange};
use crate::metrics::archive::{HOUR_MS, hour_of, start_ms};
use crate::store::history::{BlockInfo, Hours, Span, Tier};

/// The widths of buckets to choose from, in seconds.
const WIDTHS: [i64; 16] = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400];

/// The downsampled tiers, finest first, with the seconds that one row of each covers.
pub const TIERS: [(Tier, i64); 3] = [(Tier::Minute, 60), (Tier::Quarter, 900), (Tier::Hour, 3_600)];

/// The resolution of an answer: its tier and the width of its buckets.
#[derive(Debug, Clone, Copy)]
pub struct TierWidth {
    pub tier: Tier,
    /// `None` if the answer has every sample.
    pub width_ms: Option<i64>,
}

impl TierWidth {
    /// Samples as they are.
    pub const EVERY_SAMPLE: Self = Self { tier: Tier::Raw, width_ms: None };

    /// Buckets of this width, from the coarsest tier that has them.
    pub fn of_seconds(seconds: i64) -> Self {
        let tier = TIERS.iter().rev().find(|(_, step)| seconds % step == 0).map_or(Tier::Raw, |(tier, _)| *tier);
        Self { tier, width_ms: Some(seconds.saturating_mul(1000)) }
    }

    /// Extends a range to whole buckets at its ends, so that an answer does not depend on what is already sealed. A range of
    /// samples is returned unchanged.
    pub fn whole_buckets(self, range: TimeRange) -> TimeRange {
        match (self.tier, self.width_ms) {
            (Tier::Raw, _) | (_, None) => range,
            (_, Some(width_ms)) => {
                let start = bucket_start(range.start.as_millis(), width_ms);
                let end = bucket_start(range.end.as_millis(), width_ms).saturating_add(width_ms - 1);
                TimeRange { start: Timestamp::from_millis(start), end: Timestamp::from_millis(end) }
            }
        }
    }
}

impl History {
    /// Returns a width of buckets, in seconds, that is the same for every server: the smallest that divides a range into at
    /// most `max_points` buckets and whose rows have not expired at the start of the range.
    pub fn common_width(&self, range: TimeRange, max_points: u64) -> i64 {
        let (start, end) = (range.start.as_millis(), range.end.as_millis());
        let (cutoffs, first) = (self.cutoffs(), hour_of(start));
        let kept = [(cutoffs.raw, 1), (cutoffs.minute, 60), (cutoffs.quarter, 900), (cutoffs.hour, 3_600)];
        let step = kept.into_iter().find(|(since, _)| first >= *since).map_or(3_600, |(_, step)| step);
        let fitting = width_for(start, end, max_points);
        let parts = fitting.div_euclid(step) + i64::from(fitting % step != 0);
        parts.saturating_mul(step)
    }

    /// Chooses the finest resolution that `max_points` and retention allow. The inventory must be of all tiers.
    pub(super) async fn finest(
        &self,
        server_id: Uuid,
        inventory: &Inventory,
        range: TimeRange,
        max_points: u64,
    ) -> Result<TierWidth, HistoryError> {
        let Some((first, last)) = extent(inventory, range) else {
            return Ok(TierWidth::EVERY_SAMPLE);
        };
        // Samples expire by the day, and those of the present one are blocks of an hour, which may begin after its block of minutes.
        let samples_are_kept = reaches_back(inventory, &[Tier::Raw], first)
            || inventory.blocks.iter().any(|info| info.key.tier == Tier::Raw && is_of_one_day(info.first_at, first));
        if samples_are_kept && self.is_at_most(server_id, inventory, range, max_points).await? {
            return Ok(TierWidth::EVERY_SAMPLE);
        }
        let fitting = width_for(first, last, max_points);
        // The coarsest tier with such buckets; a coarser one if that has expired for part of the range.
        let natural = TIERS.iter().rev().find(|(_, step)| fitting % step == 0).copied();
        let is_kept = |tier: &(Tier, i64)| reaches_back(inventory, &[tier.0, Tier::Minute], first);
        let tier = match natural {
            None if samples_are_kept => None,
            None => TIERS.into_iter().find(is_kept).or(TIERS.last().copied()),
            Some((_, step)) => {
                TIERS.into_iter().filter(|(_, own)| *own >= step).find(is_kept).or(TIERS.last().copied())
            }
        };
        let step = tier.map_or(1, |(_, step)| step);
        let seconds =
            if fitting % step == 0 { fitting } else { fitting.div_euclid(step).saturating_add(1).saturating_mul(step) };
        Ok(TierWidth { tier: tier.map_or(Tier::Raw, |(tier, _)| tier), width_ms: Some(seconds.saturating_mul(1000)) })
    }

    /// Returns whether a range has at most `max_points` samples. Only the blocks at its ends are read.
    async fn is_at_most(
        &self,
        server_id: Uuid,
        inventory: &Inventory,
        range: TimeRange,
        max_points: u64,
    ) -> Result<bool, HistoryError> {
        let (start, end) = (range.start.as_millis(), range.end.as_millis());
        let raw = inventory
            .blocks
            .iter()
            .filter(|info| info.key.tier == Tier::Raw && info.last_at >= start && info.first_at <= end);
        let (inside, straddling): (Vec<_>, Vec<_>) =
            raw.partition(|info| info.first_at >= start && info.last_at <= end);
        let mut count: u64 = inside.iter().map(|info: &&BlockInfo| info.rows.unsigned_abs()).sum();
        if count > max_points {
            return Ok(false);
        }
        let times_only = self.loader(server_id, Selection::named([]));
        let mut steps: Vec<Step> = straddling
            .iter()
            .map(|info| Step {
                from: info.key.start,
                until: info.key.start + info.key.span.hours(),
                source: Source::Block(info.key),
            })
            .collect();
        steps.sort_by_key(|step| step.from);
        for step in &steps {
            // A block that is missing was compacted in the meantime: the count is too low then, until the next request.
            let frames = times_only.load(std::slice::from_ref(step)).await?.unwrap_or_default();
            count +=
                frames.iter().flat_map(|frame| &frame.times).filter(|at| (start..=end).contains(*at)).count() as u64;
        }
        if count > max_points {
            return Ok(false);
        }
        count += self.count_open(server_id, inventory, (start, end)).await?;
        Ok(count <= max_points)
    }

    /// Returns how many samples of a range are not sealed. Only the hours at its ends are read.
    async fn count_open(
        &self,
        server_id: Uuid,
        inventory: &Inventory,
        (start, end): (i64, i64),
    ) -> Result<u64, HistoryError> {
        let (Some(first), Some(last)) = (inventory.open_hours.first(), inventory.open_hours.last()) else {
            return Ok(0);
        };
        let mut count = self.recent.count(server_id, (start, end)).await?;
        for info in self.store.piece_infos(Hours { server_id, from: *first, until: last + 1 }).await? {
            if start <= start_ms(info.hour) && start_ms(info.hour + 1) <= end {
                count += info.samples.unsigned_abs();
                continue;
            }
            let frames = self.loader(server_id, Selection::named([])).pieces(info.hour).await?;
            count +=
                frames.iter().flat_map(|frame| &frame.times).filter(|at| (start..=end).contains(*at)).count() as u64;
        }
        Ok(count)
    }
}

/// Returns how many points an answer has at most, all its series together; `None` if only the data shows that.
pub fn most_points(range: TimeRange, resolution: Resolution, wanted: &Selection) -> Option<u64> {
    let of_a_series = match resolution {
        Resolution::Auto { max_points } => max_points,
        // A range that begins and ends within a bucket has one more, and another if buckets are whole.
        Resolution::Seconds(seconds) => {
            let range_ms = range.end.millis_since(range.start).max(0);
            range_ms.div_euclid(seconds.max(1).saturating_mul(1_000)).unsigned_abs().saturating_add(2)
        }
        Resolution::Raw => return None,
    };
    Some(of_a_series.saturating_mul(wanted.most_series()?))
}

/// Returns the earliest and latest possible time of a range's rows, in milliseconds since the epoch; `None` if it has none.
fn extent(inventory: &Inventory, range: TimeRange) -> Option<(i64, i64)> {
    let (start, end) = (range.start.as_millis(), range.end.as_millis());
    let blocks = inventory.blocks.iter().map(|info| (info.first_at, info.last_at));
    let open = inventory.open_hours.iter().map(|hour| (start_ms(*hour), start_ms(hour + 1) - 1));
    let within: Vec<(i64, i64)> = blocks.chain(open).filter(|(first, last)| *last >= start && *first <= end).collect();
    let first = within.iter().map(|(first, _)| *first).min()?;
    let last = within.iter().map(|(_, last)| *last).max()?;
    Some((first.max(start), last.min(end)))
}

fn is_of_one_day(one_ms: i64, other_ms: i64) -> bool {
    Span::Day.start_of(hour_of(one_ms)) == Span::Day.start_of(hour_of(other_ms))
}

/// Returns whether the tiers, or samples that are not sealed, reach back to `first`: within an hour, the precision of the
/// coarsest tier.
fn reaches_back(inventory: &Inventory, tiers: &[Tier], first: i64) -> bool {
    let blocks = inventory.blocks.iter().filter(|info| tiers.contains(&info.key.tier)).map(|info| info.first_at);
    let open = inventory.open_hours.iter().map(|hour| start_ms(*hour));
    blocks.chain(open).any(|at| at < first.saturating_add(HOUR_MS))
}

/// Returns the smallest bucket width, in seconds, that divides `first..=last` (milliseconds) into at most `max_points`
/// buckets.
pub fn width_for(first: i64, last: i64, max_points: u64) -> i64 {
    let fits = |width: &i64| {
        let (first, last) = (first.div_euclid(1000), last.div_euclid(1000));
        (last.div_euclid(*width) - first.div_euclid(*width) + 1).unsigned_abs() <= max_points
    };
    let wider = std::iter::successors(Some(86_400_i64 * 2), |width| width.checked_mul(2));
    // The fallback has all of time in one bucket.
    WIDTHS.into_iter().chain(wider).find(fits).unwrap_or(i64::MAX / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_answer_is_known_if_its_series_and_its_width_are_named() {
        let range = TimeRange { start: Timestamp::from_millis(0), end: Timestamp::from_millis(3_600_000) };
        let named = |names: &[&str]| Selection::named(names.iter().map(|name| (*name).to_owned()));
        let (auto, minutes) = (Resolution::Auto { max_points: 900 }, Resolution::Seconds(60));
        let two = named(&["cpu_percent", "disk_used:/"]);

        assert_eq!(most_points(range, auto, &two), Some(1_800));
        assert_eq!(most_points(range, minutes, &two), Some(2 * 62));
        assert_eq!(most_points(range, Resolution::Raw, &two), None);
        let backwards = TimeRange { start: range.end, end: range.start };
        assert_eq!(most_points(backwards, minutes, &two), Some(2 * 2));
        for many in [named(&["disk_used:*"]), Selection::based("disk_used"), Selection::series()] {
            assert_eq!(most_points(range, auto, &many), None, "{many:?}");
        }
    }
}

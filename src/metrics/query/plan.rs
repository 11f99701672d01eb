//! Plans which blocks to read for a query: for each hour the longest block of the requested tier, or finer ones if they are
//! newer or the longer one does not exist yet. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::store::history::{BlockInfo, BlockKey, Span, Tier};

/// The source for the hours `from..until`, in hours since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub from: i64,
    pub until: i64,
    pub source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The samples themselves: every block, piece and fresh sample of these hours.
    Samples,
    Block(BlockKey),
}

/// Every tier of metrics.
pub const STORED: [Tier; 4] = [Tier::Raw, Tier::Minute, Tier::Quarter, Tier::Hour];

/// Returns the tiers whose blocks a plan for this tier reads.
pub fn sources_of(tier: Tier) -> &'static [Tier] {
    match tier {
        // The minutes of hours that are not in the block of their day yet, or are newer than it.
        Tier::Quarter => &[Tier::Minute, Tier::Quarter],
        Tier::Hour => &[Tier::Minute, Tier::Hour],
        Tier::Minute => &[Tier::Minute],
        Tier::Raw | Tier::Processes => &[Tier::Raw],
    }
}

/// What is stored for a server.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The hours that are asked for.
    pub hours: Range<i64>,
    pub blocks: Vec<BlockInfo>,
    /// Hours with samples that are not sealed.
    pub open_hours: BTreeSet<i64>,
}

/// The most hours of samples that one step loads, unless they are in a block of a day.
const SAMPLE_HOURS: i64 = 6;

impl Inventory {
    fn of(&self, tier: Tier, span: Span) -> impl Iterator<Item = &BlockInfo> {
        self.blocks.iter().filter(move |info| info.key.tier == tier && info.key.span == span)
    }

    /// Returns the steps to read samples, oldest first. Hours without samples are in no step.
    pub fn samples(&self) -> Vec<Step> {
        let mut claims = Claims::default();
        for info in self.of(Tier::Raw, Span::Day) {
            claims.claim(info.key.start, info.key.start + Span::Day.hours(), Source::Samples);
        }
        let hours = self.of(Tier::Raw, Span::Hour).map(|info| info.key.start);
        let hours: BTreeSet<i64> = hours.chain(self.open_hours.iter().copied()).collect();
        let mut run: Option<(i64, i64)> = None;
        for hour in hours {
            run = match run {
                // A step never crosses midnight, because it reads the block of one day.
                Some((from, until)) if until == hour && hour - from < SAMPLE_HOURS && hour % 24 != 0 => {
                    Some((from, hour + 1))
                }
                other => {
                    other.into_iter().for_each(|(from, until)| claims.claim(from, until, Source::Samples));
                    Some((hour, hour + 1))
                }
            };
        }
        run.into_iter().for_each(|(from, until)| claims.claim(from, until, Source::Samples));
        claims.steps()
    }

    /// Returns the steps to read a tier, oldest first. The samples of hours before `first_sampled` have expired.
    pub fn tier(&self, tier: Tier, first_sampled: i64) -> Vec<Step> {
        let mut claims = Claims::default();
        // The newest sources first: they replace blocks that were compacted before those samples arrived.
        for hour in self.open_hours.range(first_sampled..) {
            claims.claim(*hour, hour + 1, Source::Samples);
        }
        for info in self.of(Tier::Minute, Span::Hour) {
            claims.claim(info.key.start, info.key.start + 1, Source::Block(info.key));
        }
        for span in [Span::Day, Span::Month] {
            for info in self.of(tier, span) {
                // To the end of its span it would be two steps around the present day's newest hours, and read in both.
                let (first, last) = info.hours().into_inner();
                // The block of the present day may end before the hours that are asked for.
                if first < self.hours.end && last >= self.hours.start {
                    claims.claim(first, last + 1, Source::Block(info.key));
                }
            }
        }
        // Late samples whose hour has otherwise expired count only if there is no downsampled block for that hour.
        for hour in self.open_hours.range(..first_sampled) {
            claims.claim(*hour, hour + 1, Source::Samples);
        }
        claims.steps()
    }
}

/// The source of each hour; the first claim wins.
#[derive(Default)]
struct Claims {
    /// The end and the source of each claimed range, by its start.
    taken: BTreeMap<i64, (i64, Source)>,
}

impl Claims {
    fn claim(&mut self, from: i64, until: i64, source: Source) {
        let mut at = from;
        let within: Vec<(i64, i64)> =
            self.taken.range(..until).map(|(start, (end, _))| (*start, *end)).filter(|(_, end)| *end > from).collect();
        for (start, end) in within {
            if start > at {
                self.taken.insert(at, (start, source));
            }
            at = at.max(end);
        }
        if at < until {
            self.taken.insert(at, (until, source));
        }
    }

    fn steps(self) -> Vec<Step> {
        self.taken.into_iter().map(|(from, (until, source))| Step { from, until, source }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::archive::start_ms;

    /// A block with rows of all its hours.
    fn info(tier: Tier, span: Span, start: i64) -> BlockInfo {
        info_of(tier, span, start, start + span.hours())
    }

    /// A block with rows until an hour.
    fn info_of(tier: Tier, span: Span, start: i64, until: i64) -> BlockInfo {
        let (first_at, last_at) = (start_ms(start), start_ms(until) - 1);
        BlockInfo { key: BlockKey { tier, span, start }, rows: 1, first_at, last_at }
    }

    type ExpectedStep = (i64, i64, Option<(Tier, Span)>);

    fn spans(steps: &[Step]) -> Vec<ExpectedStep> {
        let kind = |source| match source {
            Source::Samples => None,
            Source::Block(key) => Some((key.tier, key.span)),
        };
        steps.iter().map(|step| (step.from, step.until, kind(step.source))).collect()
    }

    #[test]
    fn the_longest_block_is_read_except_where_newer_ones_exist() {
        let inventory = Inventory {
            hours: 0..1_000,
            blocks: vec![
                info(Tier::Quarter, Span::Month, 0),
                info(Tier::Quarter, Span::Day, 24),
                info(Tier::Minute, Span::Day, 24),
                info(Tier::Minute, Span::Hour, 30),
                info(Tier::Raw, Span::Day, 24),
            ],
            open_hours: BTreeSet::from([2, 32]),
        };

        let steps = inventory.tier(Tier::Quarter, 20);

        let (day, month) = (Some((Tier::Quarter, Span::Day)), Some((Tier::Quarter, Span::Month)));
        let expected = [
            (0, 24, month),
            (24, 30, day),
            (30, 31, Some((Tier::Minute, Span::Hour))),
            (31, 32, day),
            (32, 33, None),
            (33, 48, day),
            (48, 768, month),
        ];
        assert_eq!(spans(&steps), expected);
    }

    #[test]
    fn the_block_of_a_day_that_is_not_over_is_read_once() {
        let mut blocks = vec![info_of(Tier::Minute, Span::Day, 24, 30)];
        blocks.extend((30..34).map(|hour| info(Tier::Minute, Span::Hour, hour)));
        let inventory = Inventory { hours: 0..1_000, blocks, open_hours: BTreeSet::from([34]) };

        let steps = inventory.tier(Tier::Minute, 0);

        let mut expected = vec![(24, 30, Some((Tier::Minute, Span::Day)))];
        expected.extend((30..34).map(|hour| (hour, hour + 1, Some((Tier::Minute, Span::Hour)))));
        expected.push((34, 35, None));
        assert_eq!(spans(&steps), expected);
        let evening = Inventory { hours: 32..36, ..inventory };
        assert_eq!(spans(&evening.tier(Tier::Minute, 0)), expected.split_off(1));
    }

    #[test]
    fn samples_are_read_a_day_or_a_few_hours_at_a_time() {
        let mut blocks = vec![info(Tier::Raw, Span::Day, 0), info(Tier::Raw, Span::Hour, 3)];
        blocks.extend((24..34).map(|hour| info(Tier::Raw, Span::Hour, hour)));
        let inventory = Inventory { hours: 0..1_000, blocks, open_hours: BTreeSet::from([34, 40]) };

        let steps = inventory.samples();

        assert_eq!(spans(&steps), [(0, 24, None), (24, 30, None), (30, 35, None), (40, 41, None)]);
    }
}

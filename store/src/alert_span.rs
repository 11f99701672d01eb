//! Maps time ranges to ranges of alert ids. An id begins with the time at which it was made, which is when the alert was
//! triggered, and most alerts are resolved within hours. So a list in the order of ids finds old alerts without reading from
//! its beginning, and counts them without reading each row. The exceptions are in an index of their own
//! (`migration::exceptional`) and are read one by one.

use entity::alert::Column;
use migration::BUCKET_DIGITS;
use sea_orm::{ColumnTrait, Condition};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

/// How far an ordinary alert's id may be from the time at which it was triggered, in milliseconds: the clocks of instances
/// differ, and one instance's ids never go back when its clock does.
const DRIFT_MS: i64 = 600_000;

/// How long an ordinary alert takes to be resolved, in milliseconds.
const LASTING_MS: i64 = 6 * 3_600_000;

/// The last time that an id can begin with, in milliseconds: it has 48 bits.
const LATEST_MS: i64 = (1 << 48) - 1;

/// How many milliseconds of ids form one bucket.
const BUCKET_MS: i64 = 1 << (48 - 4 * BUCKET_DIGITS);

/// Ids that were made from one millisecond on and before another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ids {
    pub from_ms: Option<i64>,
    pub before_ms: Option<i64>,
}

/// Buckets of ids whose alerts are counted already, from one on and before another, by the beginning of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buckets {
    pub first: Option<i64>,
    pub end: Option<i64>,
}

/// The ids of the alerts that were unresolved at any time between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// Contains all ordinary alerts that match.
    pub reach: Ids,
    /// Contains only alerts that match, among the ordinary ones.
    pub core: Option<Ids>,
}

impl Ids {
    pub fn condition(self) -> Condition {
        Condition::all()
            .add_option(self.from_ms.map(|at| Column::Id.gte(first_id(at))))
            .add_option(self.before_ms.map(|at| Column::Id.lt(first_id(at))))
    }

    /// The ids outside of this range.
    pub fn others(self) -> impl Iterator<Item = Self> {
        let earlier = self.from_ms.map(|at| Self { from_ms: None, before_ms: Some(at) });
        let later = self.before_ms.map(|at| Self { from_ms: Some(at), before_ms: None });
        later.into_iter().chain(earlier)
    }

    /// The whole buckets within this range; none if it has none.
    pub fn buckets(self) -> Option<Buckets> {
        let first = self.from_ms.map(|at| at.div_euclid(BUCKET_MS) + i64::from(at.rem_euclid(BUCKET_MS) > 0));
        let end = self.before_ms.map(|at| at.div_euclid(BUCKET_MS));
        let is_empty = first.zip(end).is_some_and(|(first, end)| first >= end);
        (!is_empty).then_some(Buckets { first, end })
    }

    /// The ids of this range before and after these buckets.
    pub fn beside(self, buckets: Buckets) -> impl Iterator<Item = Self> {
        let beginning = |bucket: i64| Some(bucket.saturating_mul(BUCKET_MS));
        let early = buckets.first.map(|first| Self { from_ms: self.from_ms, before_ms: beginning(first) });
        let late = buckets.end.map(|end| Self { from_ms: beginning(end), before_ms: self.before_ms });
        late.into_iter().chain(early).filter(|ids| ids.from_ms != ids.before_ms)
    }
}

impl Buckets {
    /// The condition on the table of counts.
    pub fn condition(self) -> Condition {
        use entity::alert_bucket::Column;
        let word =
            |bucket: i64| format!("{:0digits$x}", bucket.clamp(0, LATEST_MS / BUCKET_MS), digits = BUCKET_DIGITS);
        Condition::all()
            .add_option(self.first.map(|first| Column::Bucket.gte(word(first))))
            .add_option(self.end.map(|end| Column::Bucket.lt(word(end))))
    }
}

impl Span {
    /// The alerts that were not resolved before `since` and were triggered before `until`.
    pub fn new(since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        let moved = |at: Option<Timestamp>, by: i64| at.map(|at| at.as_millis().saturating_add(by));
        let reach = Ids { from_ms: moved(since, -LASTING_MS - DRIFT_MS), before_ms: moved(until, DRIFT_MS) };
        let core = Ids { from_ms: moved(since, DRIFT_MS), before_ms: moved(until, -DRIFT_MS) };
        let is_empty = core.from_ms.zip(core.before_ms).is_some_and(|(from, before)| from >= before);
        Self { reach, core: (!is_empty).then_some(core) }
    }

    /// The parts of the range on both sides of the core.
    pub fn edges(self) -> impl Iterator<Item = Ids> {
        let Self { reach, core } = self;
        let core = core.unwrap_or_default();
        let early = Ids { from_ms: reach.from_ms, before_ms: core.from_ms };
        let late = Ids { from_ms: core.before_ms, before_ms: reach.before_ms };
        [late, early].into_iter().filter(|ids| ids.from_ms.is_some() && ids.before_ms.is_some())
    }
}

/// The smallest id that can be made at this time or later.
fn first_id(at_ms: i64) -> Uuid {
    Uuid::from_u128(u128::try_from(at_ms.clamp(0, LATEST_MS)).unwrap_or_default() << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Option<Timestamp> {
        Some(Timestamp::from_millis(millis))
    }

    const DAY: i64 = 86_400_000;

    #[test]
    fn the_core_of_a_time_range_is_smaller_than_its_reach() {
        let span = Span::new(at(10 * DAY), at(20 * DAY));

        assert_eq!(span.reach, Ids { from_ms: Some(10 * DAY - 22_200_000), before_ms: Some(20 * DAY + 600_000) });
        assert_eq!(span.core, Some(Ids { from_ms: Some(10 * DAY + 600_000), before_ms: Some(20 * DAY - 600_000) }));
        assert_eq!(
            span.edges().collect::<Vec<_>>(),
            [
                Ids { from_ms: Some(20 * DAY - 600_000), before_ms: Some(20 * DAY + 600_000) },
                Ids { from_ms: Some(10 * DAY - 22_200_000), before_ms: Some(10 * DAY + 600_000) },
            ]
        );
    }

    #[test]
    fn a_range_without_an_end_has_one_edge() {
        let since = Span::new(at(DAY), None);
        let until = Span::new(None, at(DAY));

        assert_eq!(since.edges().count(), 1);
        assert_eq!(since.reach.before_ms, None);
        assert_eq!(until.edges().count(), 1);
        assert_eq!(until.reach.from_ms, None);
    }

    #[test]
    fn a_range_of_minutes_has_no_core() {
        assert_eq!(Span::new(at(DAY), at(DAY + 1_200_000)).core, None);
        assert_eq!(Span::new(at(DAY), at(DAY)).core, None);
        assert!(Span::new(at(DAY), at(DAY + 1_200_001)).core.is_some());
    }

    fn ids(from_ms: Option<i64>, before_ms: Option<i64>) -> Ids {
        Ids { from_ms, before_ms }
    }

    #[test]
    fn a_range_is_its_buckets_and_the_rest_on_both_sides() {
        let stretch = ids(Some(2 * BUCKET_MS + 1), Some(9 * BUCKET_MS - 1));
        let buckets = stretch.buckets().unwrap();

        assert_eq!(buckets, Buckets { first: Some(3), end: Some(8) });
        let (late, early) =
            (ids(Some(8 * BUCKET_MS), Some(9 * BUCKET_MS - 1)), ids(Some(2 * BUCKET_MS + 1), Some(3 * BUCKET_MS)));
        assert_eq!(stretch.beside(buckets).collect::<Vec<_>>(), [late, early]);
    }

    #[test]
    fn a_range_of_whole_buckets_leaves_no_rest() {
        let stretch = ids(Some(2 * BUCKET_MS), Some(3 * BUCKET_MS));
        let buckets = stretch.buckets().unwrap();

        assert_eq!(buckets, Buckets { first: Some(2), end: Some(3) });
        assert_eq!(stretch.beside(buckets).count(), 0);
    }

    #[test]
    fn a_range_without_an_end_has_buckets_without_one() {
        let (since, until) = (ids(Some(-1), None), ids(None, Some(BUCKET_MS - 1)));

        assert_eq!(since.buckets(), Some(Buckets { first: Some(0), end: None }));
        assert_eq!(since.beside(since.buckets().unwrap()).collect::<Vec<_>>(), [ids(Some(-1), Some(0))]);
        assert_eq!(until.buckets(), Some(Buckets { first: None, end: Some(0) }));
        assert_eq!(until.beside(until.buckets().unwrap()).collect::<Vec<_>>(), [ids(Some(0), Some(BUCKET_MS - 1))]);
    }

    #[test]
    fn a_range_without_a_whole_bucket_has_none() {
        assert_eq!(ids(Some(1), Some(2 * BUCKET_MS - 1)).buckets(), None);
        assert_eq!(ids(Some(BUCKET_MS + 1), Some(BUCKET_MS + 2)).buckets(), None);
    }

    #[test]
    fn ids_are_in_the_order_of_their_times() {
        let at = 1_795_392_000_000;
        let id = Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 1_795_392_000, 0));

        assert!(first_id(at) <= id && id < first_id(at + 1));
        assert_eq!(first_id(-1), Uuid::nil());
    }
}

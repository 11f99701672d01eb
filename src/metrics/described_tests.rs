use std::collections::BTreeSet;
use std::ops::Range;

use signalbox_protocol::series::{SeriesKind, Unit};

use super::*;

fn description(id: u16, name: &str, unit: Unit) -> SeriesDescription {
    SeriesDescription { id, name: name.to_owned(), unit, kind: SeriesKind::Gauge, target: None, help: String::new() }
}

fn described(series: Vec<SeriesDescription>) -> Described {
    let mut described = Described::default();
    described.describe(series, &KnownSeries::default(), Instant::now()).unwrap();
    described
}

/// The values of a live sample.
fn open(described: &mut Described, values: &[(u16, f64)]) -> Result<Open, Undescribed> {
    described.open(values, None)
}

fn told(open: &Open) -> Vec<(String, f64)> {
    open.iter().map(|(series, value)| (format!("{series} {}", series.unit), value)).collect()
}

#[test]
fn values_are_in_the_order_of_their_descriptions_and_each_series_occurs_once() {
    let series = [(7, "fan", Unit::Rpm), (3, "left", Unit::Days), (9, "fan", Unit::Rpm)];
    let mut described = described(series.map(|(id, name, unit)| description(id, name, unit)).into());

    let values = open(&mut described, &[(3, 1.5), (9, 2.0), (7, -0.0)]).unwrap();

    assert_eq!(told(&values), [("fan rpm".to_owned(), 2.0), ("left days".to_owned(), 1.5)]);
    assert_eq!(open(&mut described, &[(3, 1.0), (4, 1.0)]), Err(Undescribed::Unknown(4)));
    assert_eq!(open(&mut described, &[(3, f64::NAN)]), Err(OutOfRange { field: "values" }.into()));
}

#[test]
fn the_later_of_two_units_counts_for_every_id() {
    let mut described = described(vec![description(1, "left", Unit::Seconds), description(2, "left", Unit::Days)]);

    assert_eq!(told(&open(&mut described, &[(1, 5.0)]).unwrap()), [("left days".to_owned(), 5.0)]);
}

#[test]
fn series_beyond_the_limit_are_dropped_until_an_id_is_reused() {
    let many = (0..=MAX_SERIES as u16).map(|id| description(id, &format!("s{id}"), Unit::Count)).collect();
    let mut described = described(many);
    let last = MAX_SERIES as u16;

    assert_eq!(described.dropped(), 1);
    assert!(open(&mut described, &[(last, 1.0)]).unwrap().is_empty(), "dropped, not malformed");
    let again = vec![description(0, "s1", Unit::Count), description(last, "late", Unit::Count)];
    described.describe(again, &KnownSeries::default(), Instant::now()).unwrap();

    assert_eq!(described.dropped(), 0);
    assert_eq!(told(&open(&mut described, &[(last, 1.0)]).unwrap()), [("late count".to_owned(), 1.0)]);
}

/// The series `s0`, `s1` and so on.
fn numbered(ids: Range<u16>) -> Vec<SeriesDescription> {
    ids.map(|id| description(id, &format!("s{id}"), Unit::Count)).collect()
}

/// Values of these ids.
fn ones(ids: impl IntoIterator<Item = u16>) -> Vec<(u16, f64)> {
    ids.into_iter().map(|id| (id, 1.0)).collect()
}

/// One agent's connection, by the seconds since it began.
struct Connection {
    described: Described,
    known: KnownSeries,
    began: Instant,
}

impl Connection {
    fn new() -> Self {
        Self { described: Described::default(), known: KnownSeries::default(), began: Instant::now() }
    }

    /// Returns the names with help.
    fn describe(&mut self, second: u64, series: Vec<SeriesDescription>) -> Vec<String> {
        let helps = self.described.describe(series, &self.known, self.began + Duration::from_secs(second));
        helps.unwrap().into_keys().collect()
    }

    /// Returns the names that are kept of a sample of these ids.
    fn sample(&mut self, second: u64, ids: impl IntoIterator<Item = u16>) -> BTreeSet<String> {
        let arrived = self.began + Duration::from_secs(second);
        let kept = self.described.open(&ones(ids), Some(arrived)).unwrap();
        kept.iter().map(|(series, _)| series.to_string()).collect()
    }
}

fn names<const N: usize>(ids: [u16; N]) -> BTreeSet<String> {
    ids.map(|id| format!("s{id}")).into()
}

const FIRST: u16 = MAX_SERIES as u16;

#[test]
fn new_series_get_the_places_of_those_that_samples_lack() {
    let mut agent = Connection::new();
    agent.describe(0, numbered(0..FIRST));
    agent.sample(0, [0, 1]);

    // One sample an hour: no series has been missing from any yet.
    agent.describe(3_600, numbered(FIRST..FIRST + 1));
    assert_eq!(agent.described.dropped(), 1);
    assert_eq!(agent.sample(3_600, [0]), names([0]));
    agent.described.open(&ones([1]), None).unwrap();
    agent.describe(3_601, numbered(FIRST + 1..FIRST + 3));
    assert_eq!(agent.described.dropped(), 0, "those that are gone are not missed");

    let lost = agent.described.open(&ones([1, 2, 3]), None).unwrap();
    assert_eq!(told(&lost), [("s3 count".to_owned(), 1.0)], "a live sample does not keep a place, and gets none");
    let all = [0, 1, FIRST, FIRST + 1, FIRST + 2];
    assert_eq!(agent.sample(3_602, all), names(all), "others are still idle");
    assert_eq!(agent.described.dropped(), 0);
}

#[test]
fn a_series_without_a_place_gets_one_when_another_is_idle() {
    let mut agent = Connection::new();
    let last = SeriesDescription { help: "Of use.".to_owned(), ..description(FIRST, "last", Unit::Count) };
    agent.describe(0, numbered(0..FIRST));
    assert_eq!(agent.describe(0, vec![last]), ["last"]);

    assert_eq!(agent.sample(0, 0..=FIRST).len(), MAX_SERIES);
    assert_eq!(agent.sample(299, [0, FIRST]), names([0]));
    assert_eq!(agent.described.dropped(), 1);

    assert_eq!(agent.sample(300, [0, FIRST]), BTreeSet::from(["s0".to_owned(), "last".to_owned()]));
    assert_eq!(agent.described.dropped(), 0);
}

#[test]
fn the_longest_idle_series_gives_its_place_and_gets_one_when_it_is_back() {
    let mut agent = Connection::new();
    agent.describe(0, numbered(0..FIRST));
    agent.sample(0, 0..FIRST);
    agent.sample(10, (0..FIRST).filter(|id| *id != 7));
    agent.sample(400, [0]);
    agent.describe(400, numbered(FIRST..FIRST + 1));

    let kept = agent.sample(401, 0..=FIRST);
    assert_eq!((kept.len(), kept.contains("s7")), (MAX_SERIES, false), "all others keep theirs");
    assert_eq!(agent.described.dropped(), 1);

    assert_eq!(agent.sample(701, [0, 7, 8]), names([0, 7, 8]));
    assert_eq!(agent.described.dropped(), 0);
}

#[test]
fn there_is_one_search_for_each_sample() {
    let mut agent = Connection::new();
    agent.describe(0, numbered(0..FIRST));
    agent.sample(300, [0]);
    agent.describe(300, numbered(FIRST..FIRST + 1));
    assert_eq!((agent.described.dropped(), agent.described.idle.len()), (0, MAX_SERIES - 2));

    agent.described.idle.clear();
    agent.describe(301, numbered(FIRST + 1..FIRST + 2));
    assert_eq!(agent.described.dropped(), 1, "a search would have found one");

    assert_eq!(agent.sample(302, [FIRST + 1]), names([FIRST + 1]));
}

#[test]
fn series_that_wait_are_bounded_and_the_number_of_dropped_ones_forgets_those_that_are_gone() {
    let mut agent = Connection::new();
    agent.describe(0, numbered(0..2 * FIRST + 1));
    assert_eq!((agent.described.dropped(), agent.described.waiting.len()), (FIRST as u32 + 1, MAX_SERIES));

    let (forgotten, waiting) = (FIRST, 2 * FIRST);
    assert_eq!(agent.sample(300, [forgotten, waiting]), names([waiting]));
    assert_eq!(agent.described.dropped(), FIRST as u32, "their values may come yet");

    agent.sample(600, [forgotten, waiting]);
    assert_eq!(agent.described.dropped(), 1);
    agent.sample(900, [waiting]);
    assert_eq!(agent.described.dropped(), 0);
}

#[test]
fn a_series_that_waited_takes_the_later_unit() {
    let mut agent = Connection::new();
    agent.describe(0, numbered(0..FIRST));
    agent.describe(0, vec![description(FIRST, "left", Unit::Seconds)]);
    agent.describe(0, vec![description(0, "left", Unit::Days)]);

    let values = agent.described.open(&ones([FIRST]), Some(agent.began)).unwrap();

    assert_eq!(told(&values), [("left days".to_owned(), 1.0)]);
}

#[test]
fn idle_series_release_their_bytes_and_every_id() {
    let mut agent = Connection::new();
    let long = |id: u16, number: u16| SeriesDescription {
        target: Some(format!("{number:0>255}")),
        ..description(id, "queue_length", Unit::Count)
    };
    let most = (MAX_BYTES / (255 + "queue_length".len() + BESIDE)) as u16;
    agent.describe(0, (0..most).map(|id| long(id, id)).chain([long(most, 0)]).collect());
    agent.sample(300, []);

    agent.describe(300, (0..most).map(|id| long(10_000 + id, 10_000 + id)).collect());

    assert_eq!(agent.described.dropped(), 0);
    assert_eq!(agent.sample(301, (10_000..10_000 + most).chain([1, most])).len(), usize::from(most));
    assert_eq!(agent.described.dropped(), 2);
    assert!(agent.described.waiting_bytes <= MAX_BYTES);
    assert_eq!(agent.sample(601, [1, most]).len(), 2);
    assert_eq!(agent.described.dropped(), 0);
}

#[test]
fn long_targets_are_bounded_by_their_bytes() {
    let long = |id: u16| SeriesDescription {
        target: Some(format!("{id:0>255}")),
        ..description(id, "queue_length", Unit::Count)
    };

    let described = described((0..1_000).map(long).collect());

    let most = MAX_BYTES / (255 + "queue_length".len() + BESIDE);
    assert_eq!(described.dropped() as usize, 1_000 - most);
}

#[test]
fn series_with_the_names_of_sample_fields_are_dropped() {
    let mut described =
        described(vec![description(1, "cpu_percent", Unit::Percent), description(2, "bytes_sent", Unit::Bytes)]);

    assert_eq!(described.dropped(), 2);
    assert!(open(&mut described, &[(1, 5.0), (2, 5.0)]).unwrap().is_empty());
}

#[test]
fn an_invalid_message_describes_nothing() {
    let mut described = Described::default();
    let series = vec![description(1, "good", Unit::Count), description(2, "Bad", Unit::Count)];

    let refused = described.describe(series, &KnownSeries::default(), Instant::now());

    assert_eq!(refused, Err(OutOfRange { field: "series.name" }.into()));
    assert_eq!(open(&mut described, &[(1, 1.0)]), Err(Undescribed::Unknown(1)));
}

use signalbox_protocol::Timestamp;

use super::*;

const WEB_1: Uuid = Uuid::from_u128(1);
const WEB_2: Uuid = Uuid::from_u128(2);
const DB_1: Uuid = Uuid::from_u128(3);

/// Ten buckets of a minute.
fn grid() -> Grid {
    Grid::new(TimeRange { start: Timestamp::from_millis(0), end: Timestamp::from_millis(599_000) }, 60)
}

/// A column with these values, one a minute; `None` is a minute without a sample.
fn series(columns: &[(&str, &[Option<f64>])]) -> Series {
    let count = columns.iter().map(|(_, values)| values.len()).max().unwrap_or_default();
    let columns = columns.iter().map(|(name, values)| {
        let mut points = Points::default();
        for (place, value) in values.iter().enumerate() {
            if let Some(value) = value {
                points.add(place, 1.0, [*value, value - 1.0, value + 1.0]);
            }
        }
        ((*name).to_owned(), points)
    });
    let timestamps = (0..count).map(|minute| 60 * i64::try_from(minute).unwrap()).collect();
    Series { resolution_seconds: 60, timestamps, columns: columns.collect(), damaged_blocks: 0, place: None }
}

fn cpu(values: &[f64]) -> Series {
    let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    series(&[("cpu_percent", values.as_slice())])
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn member(server_id: Uuid, tags: &[String]) -> Member<'_> {
    Member { server_id, tags, spacing_ms: 5_000 }
}

fn means(line: &Line) -> Vec<Option<f64>> {
    line.values.iter().map(|value| value.map(|shown| shown.avg)).collect()
}

/// The lines of two web servers and a database.
fn fleet(function: Function, by: GroupBy) -> Vec<Line> {
    let (web, db) = (names(&["web", "eu"]), names(&["db"]));
    let mut combiner = Combiner::new(grid(), function, by);
    let wanted = names(&["cpu_percent"]);
    combiner.add(member(WEB_1, &web), &wanted, &cpu(&[10.0, 20.0])).unwrap();
    combiner.add(member(WEB_2, &web), &wanted, &cpu(&[30.0])).unwrap();
    combiner.add(member(DB_1, &db), &wanted, &cpu(&[5.0, 6.0, 7.0])).unwrap();
    combiner.finish(Rank::Max, 10).lines
}

#[test]
fn a_function_is_applied_to_the_servers_that_have_a_value() {
    let expected = [
        (Function::Avg, [15.0, 13.0, 7.0], (4.0, 31.0)),
        (Function::Sum, [45.0, 26.0, 7.0], (42.0, 48.0)),
        (Function::Min, [5.0, 6.0, 7.0], (4.0, 6.0)),
        (Function::Max, [30.0, 20.0, 7.0], (29.0, 31.0)),
    ];

    for (function, course, (least, most)) in expected {
        let lines = fleet(function, GroupBy::None);

        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!(means(line)[..4], [Some(course[0]), Some(course[1]), Some(course[2]), None], "{function:?}");
        assert_eq!(line.servers[..4], [3_u32, 2, 1, 0], "{function:?}");
        let first = line.values[0].unwrap();
        assert_eq!((first.min, first.max), (least, most), "{function:?}");
    }
}

#[test]
fn each_server_and_each_tag_has_its_line_the_highest_first() {
    let by_server: Vec<Option<Uuid>> =
        fleet(Function::Avg, GroupBy::Server).iter().map(|line| line.key.server_id).collect();
    assert_eq!(by_server, [Some(WEB_2), Some(WEB_1), Some(DB_1)]);

    let by_tag = fleet(Function::Sum, GroupBy::Tag);
    let tags: Vec<Option<&str>> = by_tag.iter().map(|line| line.key.tag.as_deref()).collect();
    assert_eq!(tags, [Some("eu"), Some("web"), Some("db")]);
    assert_eq!(means(&by_tag[0])[..3], [Some(40.0), Some(20.0), None]);
    assert_eq!(by_tag[0].servers[..3], [2_u32, 1, 0]);
}

#[test]
fn servers_without_tags_have_a_line_of_their_own() {
    let mut combiner = Combiner::new(grid(), Function::Avg, GroupBy::Tag);
    combiner.add(member(WEB_1, &[]), &names(&["cpu_percent"]), &cpu(&[1.0])).unwrap();

    let lines = combiner.finish(Rank::Last, 10).lines;

    assert_eq!(lines.iter().map(|line| line.key.tag.clone()).collect::<Vec<_>>(), [None]);
}

#[test]
fn a_star_sums_the_targets_of_a_server_or_shows_each() {
    let disks =
        series(&[("disk_read:sda", &[Some(1.0)]), ("disk_read:sdb", &[Some(2.0)]), ("disk_reads:sda", &[Some(9.0)])]);
    let lines = |by| {
        let mut combiner = Combiner::new(grid(), Function::Sum, by);
        combiner.add(member(WEB_1, &[]), &names(&["disk_read:*"]), &disks).unwrap();
        combiner.finish(Rank::Max, 10).lines
    };

    let summed = lines(GroupBy::Server);
    assert_eq!((means(&summed[0])[0], summed[0].servers[0]), (Some(3.0), 1));
    let each: Vec<Option<String>> = lines(GroupBy::Series).into_iter().map(|line| line.key.series).collect();
    assert_eq!(each, [Some("disk_read:sdb".to_owned()), Some("disk_read:sda".to_owned())]);
}

#[test]
fn only_the_lines_of_the_highest_rank_are_kept() {
    let ranked = |rank| {
        let mut combiner = Combiner::new(grid(), Function::Avg, GroupBy::Server);
        for (id, values) in [(WEB_1, [90.0, 1.0, 1.0]), (WEB_2, [40.0, 40.0, 40.0]), (DB_1, [0.0, 0.0, 50.0])] {
            combiner.add(member(id, &[]), &names(&["cpu_percent"]), &cpu(&values)).unwrap();
        }
        let Lines { lines, left_out } = combiner.finish(rank, 1);
        assert_eq!((lines.len(), left_out), (1, 2));
        lines[0].key.server_id
    };

    assert_eq!(ranked(Rank::Max), Some(WEB_1));
    assert_eq!(ranked(Rank::Mean), Some(WEB_2));
    assert_eq!(ranked(Rank::Last), Some(DB_1));
}

#[test]
fn a_value_holds_until_the_next_sample_is_overdue_and_a_gap_stays_a_gap() {
    let fine = Grid::new(TimeRange { start: Timestamp::from_millis(0), end: Timestamp::from_millis(49_000) }, 5);
    let mut points = Points::default();
    for place in [0, 2] {
        points.add(place, 1.0, [1.0; 3]);
    }
    let timestamps = vec![0, 5, 10];
    let columns = [("cpu_percent".to_owned(), points)].into();
    let read = Series { resolution_seconds: 5, timestamps, columns, damaged_blocks: 0, place: None };
    let mut combiner = Combiner::new(fine, Function::Sum, GroupBy::None);

    combiner.add(member(WEB_1, &[]), &names(&["cpu_percent"]), &read).unwrap();

    let shown = means(&combiner.finish(Rank::Max, 1).lines[0]);
    // The value at 10 s holds for three times the distance of the samples.
    let expected: Vec<Option<f64>> = (0..10).map(|place| (place <= 5).then_some(1.0)).collect();
    assert_eq!(shown, expected);
}

#[test]
fn the_present_bucket_does_not_lose_servers_that_have_not_reported_in_it_yet() {
    let sums = |end_ms| {
        let range = TimeRange { start: Timestamp::from_millis(0), end: Timestamp::from_millis(end_ms) };
        let mut combiner = Combiner::new(Grid::new(range, 60), Function::Sum, GroupBy::None);
        combiner.add(member(WEB_1, &[]), &names(&["cpu_percent"]), &cpu(&[1.0, 1.0, 1.0])).unwrap();
        combiner.add(member(WEB_2, &[]), &names(&["cpu_percent"]), &cpu(&[1.0, 1.0])).unwrap();
        means(&combiner.finish(Rank::Max, 1).lines[0])
    };

    assert_eq!(sums(123_000), [Some(2.0), Some(2.0), Some(2.0)]);
    assert_eq!(sums(170_000), [Some(2.0), Some(2.0), Some(1.0)]);
}

#[test]
fn too_many_lines_are_refused() {
    let range = TimeRange { start: Timestamp::from_millis(0), end: Timestamp::from_millis(60_000 * 499) };
    let mut combiner = Combiner::new(Grid::new(range, 60), Function::Avg, GroupBy::Server);
    let mut add = |number| {
        let one = cpu(&[1.0]);
        combiner.add(member(Uuid::from_u128(number), &[]), &names(&["cpu_percent"]), &one)
    };

    let outcomes: Vec<_> = (0..1_001).map(&mut add).collect();

    assert!(outcomes[..1_000].iter().all(Result::is_ok));
    assert_eq!(outcomes[1_000], Err(TooManyLines));
}

#[test]
fn an_empty_range_has_no_buckets() {
    let empty = TimeRange { start: Timestamp::from_millis(60_000), end: Timestamp::from_millis(0) };

    assert_eq!(Grid::new(empty, 60).timestamps(), Vec::<i64>::new());
}

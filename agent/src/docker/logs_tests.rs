use super::*;
use crate::docker::fixture::{
    Ending, Played, STDERR, STDOUT, long_lines, long_messages, record, short_lines, short_messages,
};

fn params(tail: u32) -> LogsParams {
    LogsParams { container_id: "web".into(), tail, since: None, until: None, stdout: true, stderr: false }
}

fn line(second: i64, message: &str) -> LogLine {
    LogLine { timestamp: Some(Timestamp::from_millis(second * 1000)), stream: None, message: message.into() }
}

/// The lines that are kept of these.
fn keep(params: &LogsParams, lines: impl IntoIterator<Item = LogLine>) -> Kept {
    let (mut kept, mut window) = (Kept::new(params), Window::whole_log());
    lines.into_iter().for_each(|line| kept.add(line, &mut window));
    kept
}

#[test]
fn the_newest_lines_are_kept() {
    let kept = keep(&params(2), (1..=4).map(|second| line(second, "x")));

    assert_eq!(kept.into_logs(), ContainerLogs { lines: vec![line(3, "x"), line(4, "x")], truncated: false });
}

#[test]
fn more_than_fits_into_an_answer_loses_its_oldest_lines_and_says_so() {
    let long = "x".repeat(64 * 1024);

    let logs = keep(&params(10_000), (1..=60).map(|second| line(second, &long))).into_logs();

    assert!(logs.truncated);
    assert_eq!(logs.lines.last(), Some(&line(60, &long)));
    assert!(logs.lines.iter().map(LogLine::cost).sum::<u64>() <= MAX_BYTES);
}

#[test]
fn long_lines_before_the_last_ones_are_not_missing() {
    let long = "x".repeat(64 * 1024);
    let lines = (1..=60).map(|second| line(second, &long)).chain((61..=62).map(|second| line(second, "x")));

    let logs = keep(&params(2), lines).into_logs();

    assert_eq!(logs, ContainerLogs { lines: vec![line(61, "x"), line(62, "x")], truncated: false });
}

#[test]
fn lines_outside_of_the_asked_time_are_left_out() {
    let at = |millis| Some(Timestamp::from_millis(millis));
    let params = LogsParams { since: at(2_000), until: at(3_000), ..params(100) };
    let lines = [1_999, 2_000, 3_000, 3_001].map(|millis| LogLine { timestamp: at(millis), ..line(0, "x") });

    let logs = keep(&params, lines).into_logs();

    let times: Vec<_> = logs.lines.into_iter().map(|line| line.timestamp).collect();
    assert_eq!(times, [at(2_000), at(3_000)]);
}

#[test]
fn what_was_found_in_time_is_whole_lines_and_says_that_more_are_missing() {
    let (mut kept, mut window) = (Kept::new(&params(10)), Window::of_last(10));

    (1..=3).for_each(|second| kept.add(line(second, "x"), &mut window));

    assert_eq!(kept.into_whole_lines(), ContainerLogs { lines: vec![line(2, "x"), line(3, "x")], truncated: true });
}

#[test]
fn the_engine_is_asked_for_whole_seconds_and_in_a_window_for_both_streams() {
    let at = |millis| Some(Timestamp::from_millis(millis));
    let ranged = LogsParams { since: at(1_500), until: at(2_500), ..params(10) };

    let counted = "/containers/web/logs?timestamps=1&tail=42&stdout=true&stderr=true";
    assert_eq!(path(&params(10), &Window::of_last(10)), counted);
    let expected = "/containers/web/logs?timestamps=1&tail=all&stdout=true&stderr=false&since=1&until=3";
    assert_eq!(path(&ranged, &Window::whole_log()), expected);
    let whole = "/containers/web/logs?timestamps=1&tail=all&stdout=true&stderr=false";
    assert_eq!(path(&params(10), &Window::whole_log()), whole);
}

#[tokio::test]
async fn records_of_the_other_stream_take_no_lines_away() {
    let log = [short_lines(STDOUT, 1..=20), short_lines(STDERR, 21..=120)].concat();

    let (messages, tails) = Played::new(log).read(&params(10)).await;

    assert_eq!(messages, short_messages(11..=20));
    assert_eq!(tails, ["42", "168"]);
}

#[tokio::test]
async fn pieces_of_long_lines_take_no_lines_away() {
    let (messages, tails) = Played::new(long_lines(2, 1..=200)).read(&params(100)).await;

    assert_eq!(messages, long_messages(2, 101..=200));
    assert_eq!(tails, ["132", "528"]);
}

#[tokio::test]
async fn the_rest_of_a_cut_line_is_no_line() {
    // The last 42 records are ten lines and a half, and so are nearly the last 43.
    let (ten, once) = Played::new(long_lines(4, 1..=100)).read(&params(10)).await;
    let (eleven, twice) = Played::new(long_lines(4, 1..=100)).read(&params(11)).await;

    assert_eq!((ten, once), (long_messages(4, 91..=100), vec!["42".to_owned()]));
    assert_eq!((eleven, twice), (long_messages(4, 90..=100), vec!["43".to_owned(), "172".to_owned()]));
}

#[tokio::test]
async fn a_line_that_begins_before_the_records_of_the_other_stream_is_read_from_its_beginning() {
    let log = [
        short_lines(STDOUT, 1..=100),
        vec![record(STDERR, 101, "begin ")],
        short_lines(STDOUT, 102..=150),
        vec![record(STDERR, 101, "end\n")],
    ];
    let params = LogsParams { stderr: true, ..params(10) };

    let (messages, tails) = Played::new(log.concat()).read(&params).await;

    assert_eq!(messages, [short_messages(142..=150), vec!["begin end".to_owned()]].concat());
    assert_eq!(tails, ["42", "168"]);
}

#[tokio::test]
async fn one_read_is_enough_for_short_lines_of_both_streams() {
    let log = [short_lines(STDOUT, 1..=195), short_lines(STDERR, 196..=196), short_lines(STDOUT, 197..=200)].concat();
    let params = LogsParams { stderr: true, ..params(10) };

    let (messages, tails) = Played::new(log).read(&params).await;

    assert_eq!(messages, short_messages(191..=200));
    assert_eq!(tails, ["42"]);
}

#[tokio::test]
async fn a_log_that_is_shorter_is_read_once() {
    let (messages, tails) = Played::new(short_lines(STDOUT, 1..=5)).read(&params(10)).await;

    assert_eq!(messages, short_messages(1..=5));
    assert_eq!(tails, ["42"]);
}

#[tokio::test]
async fn lines_before_the_last_ones_are_counted_for_who_follows() {
    let mut played = Played::new(long_lines(4, 1..=100));

    let last = find_last(&played.docker.engine, "web", Framing::Framed, 11).await;

    assert_eq!(played.tails(), ["43", "172"]);
    let newest = Timestamp::parse("2026-11-20T09:01:40Z");
    assert_eq!(last, LastRecords { tail: "172".to_owned(), earlier: 32, newest });
}

/// A Docker that stalls when it is asked for more of its log.
fn stalling() -> Played {
    Played::scripted(long_lines(4, 1..=100), |answer, _| if answer == 2 { Ending::Stalled } else { Ending::Whole })
}

#[tokio::test]
async fn what_was_found_in_time_is_the_answer_where_the_engine_stalls() {
    let (played, params) = (stalling(), params(11));

    let logs = played.past_its_stall(READ_WITHIN, read(&played.docker.engine, &params)).await.unwrap();

    let messages: Vec<String> = logs.lines.into_iter().map(|line| line.message).collect();
    assert_eq!((messages, logs.truncated), (long_messages(4, 91..=100), true));
}

#[tokio::test]
async fn a_log_is_followed_from_what_was_found_in_time_where_the_engine_stalls() {
    let played = stalling();

    let search = find_last(&played.docker.engine, "web", Framing::Framed, 11);
    let last = played.past_its_stall(FIND_WITHIN, search).await;

    let newest = Timestamp::parse("2026-11-20T09:01:40Z");
    assert_eq!(last, LastRecords { tail: "43".to_owned(), earlier: 1, newest });
}

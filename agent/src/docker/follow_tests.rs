use crate::docker::fixture::{Ending, Played, STDOUT, long_lines, long_messages, short_lines, short_messages};

/// A Docker that breaks this answer off.
fn breaking(number: usize, log: Vec<Vec<u8>>) -> Played {
    Played::scripted(log, move |answer, _| if answer == number { Ending::Broken } else { Ending::Whole })
}

#[tokio::test]
async fn the_last_lines_come_whole_and_as_many_as_were_asked_for() {
    let played = Played::new(long_lines(4, 1..=100));

    assert_eq!(played.follow(11).await, long_messages(4, 90..=100));
}

#[tokio::test]
async fn lines_that_are_written_while_the_last_ones_are_found_come_too() {
    for tail in [0, 1] {
        let played = Played::scripted(short_lines(STDOUT, 1..=100), |answer, log| {
            if answer == 2 {
                log.extend(short_lines(STDOUT, 101..=102));
            }
            Ending::Whole
        });

        assert_eq!(played.follow(tail).await, short_messages(101..=102), "tail {tail}");
    }
}

#[tokio::test]
async fn an_engine_that_ends_during_the_search_does_not_end_the_watch() {
    let at_once = breaking(1, short_lines(STDOUT, 1..=100));
    let later = breaking(2, long_lines(4, 1..=100));

    assert_eq!(at_once.follow(10).await, short_messages(91..=100));
    assert_eq!(later.follow(11).await, long_messages(4, 91..=100), "those that were found");
}

#[tokio::test]
async fn what_is_read_after_a_stream_that_broke_is_new() {
    // The fake engine has only lines that were written since the watch began.
    let played = breaking(2, short_lines(STDOUT, 1..=100));

    assert_eq!(played.follow(0).await, short_messages(1..=100));
}

//! Watchers share the agent's streams, and each gets as many existing lines as it asked for.

use signalbox_protocol::agent::ServiceMessage;

use super::{expect_start, fail, message, send_lines, watch};
use crate::support::site::Site;

#[actix_web::test]
async fn two_watchers_share_one_stream_and_the_last_one_ends_it() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut first = watch(&site, "tail=3").await;
    let start = expect_start(&mut agent).await;
    send_lines(&mut agent, start.stream_id, &["one", "two", "three"]).await;
    for expected in ["one", "two", "three"] {
        assert_eq!(message(&mut first).await, expected);
    }

    let mut second = watch(&site, "tail=2").await;
    for expected in ["two", "three"] {
        assert_eq!(message(&mut second).await, expected);
    }
    send_lines(&mut agent, start.stream_id, &["four"]).await;
    assert_eq!(message(&mut first).await, "four");
    assert_eq!(message(&mut second).await, "four");
    first.socket.close().await;
    send_lines(&mut agent, start.stream_id, &["five"]).await;
    assert_eq!(message(&mut second).await, "five");
    second.socket.close().await;

    assert_eq!(agent.next().await, ServiceMessage::LogsStop { stream_id: start.stream_id });
    assert_eq!(site.service.state.logs.streams(), 0);
}

#[actix_web::test]
async fn a_watcher_that_asks_for_more_lines_than_there_are_gets_them_from_the_agent() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut few = watch(&site, "tail=1").await;
    let of_few = expect_start(&mut agent).await;
    send_lines(&mut agent, of_few.stream_id, &["three"]).await;
    assert_eq!(message(&mut few).await, "three");

    let mut many = watch(&site, "tail=3").await;
    let of_many = expect_start(&mut agent).await;
    send_lines(&mut agent, of_many.stream_id, &["one", "two", "three"]).await;

    assert_eq!(of_many.tail, Some(3));
    for expected in ["one", "two", "three"] {
        assert_eq!(message(&mut many).await, expected);
    }
    // Each stream ends with its own last watcher.
    assert_eq!(site.service.state.logs.streams(), 2);
    many.socket.close().await;
    assert_eq!(agent.next().await, ServiceMessage::LogsStop { stream_id: of_many.stream_id });
    send_lines(&mut agent, of_few.stream_id, &["four"]).await;
    assert_eq!(message(&mut few).await, "four");
    few.socket.close().await;
    assert_eq!(agent.next().await, ServiceMessage::LogsStop { stream_id: of_few.stream_id });
    assert_eq!(site.service.state.logs.streams(), 0);
}

#[actix_web::test]
async fn a_watcher_that_asks_for_fewer_lines_than_are_still_to_come_gets_no_more() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut many = watch(&site, "tail=3").await;
    let of_many = expect_start(&mut agent).await;
    send_lines(&mut agent, of_many.stream_id, &["one", "two"]).await;
    for expected in ["one", "two"] {
        assert_eq!(message(&mut many).await, expected);
    }

    let mut few = watch(&site, "tail=1").await;
    let of_few = expect_start(&mut agent).await;
    send_lines(&mut agent, of_many.stream_id, &["three"]).await;
    send_lines(&mut agent, of_few.stream_id, &["three"]).await;

    assert_eq!(of_few.tail, Some(1));
    assert_eq!(message(&mut many).await, "three");
    assert_eq!(message(&mut few).await, "three");
    // All existing lines have arrived, so both streams can serve it.
    let mut third = watch(&site, "tail=1").await;
    assert_eq!(message(&mut third).await, "three");
    assert_eq!(site.service.state.logs.streams(), 2);
}

#[actix_web::test]
async fn one_log_does_not_take_all_streams_of_its_agent() {
    const STREAMS: u32 = 3;
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut watchers = Vec::new();
    for tail in 1..=STREAMS {
        watchers.push(watch(&site, &format!("tail={tail}")).await);
        assert_eq!(expect_start(&mut agent).await.tail, Some(tail));
    }

    let _last = watch(&site, &format!("tail={}", STREAMS + 1)).await;
    let mut other = watch(&site, "source=file&path=/var/log/app.log").await;
    let of_other = expect_start(&mut agent).await;
    send_lines(&mut agent, of_other.stream_id, &["of the file"]).await;

    assert_eq!(of_other.source, "file");
    assert_eq!(message(&mut other).await, "of the file");
    assert_eq!(site.service.state.logs.streams(), 4);
}

#[actix_web::test]
async fn a_watcher_for_whose_stream_the_agent_has_no_place_shares_another_one() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut few = watch(&site, "tail=1").await;
    let of_few = expect_start(&mut agent).await;
    send_lines(&mut agent, of_few.stream_id, &["one"]).await;
    assert_eq!(message(&mut few).await, "one");
    let mut many = watch(&site, "tail=3").await;
    let of_many = expect_start(&mut agent).await;

    fail(&mut agent, of_many.stream_id, "agent_busy", "the agent has too many streams already").await;

    assert_eq!(message(&mut many).await, "one");
    send_lines(&mut agent, of_few.stream_id, &["two"]).await;
    assert_eq!(message(&mut few).await, "two");
    assert_eq!(message(&mut many).await, "two");
    assert_eq!(site.service.state.logs.streams(), 1);
    few.socket.close().await;
    send_lines(&mut agent, of_few.stream_id, &["three"]).await;
    assert_eq!(message(&mut many).await, "three");
    many.socket.close().await;
    assert_eq!(agent.next().await, ServiceMessage::LogsStop { stream_id: of_few.stream_id });
    assert_eq!(site.service.state.logs.streams(), 0);
}

#[actix_web::test]
async fn a_watcher_learns_that_the_agent_has_no_place_where_no_other_stream_is_left() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut watchers = [watch(&site, "tail=1").await, watch(&site, "tail=2").await];
    for _ in 0..watchers.len() {
        let start = expect_start(&mut agent).await;
        fail(&mut agent, start.stream_id, "agent_busy", "the agent has too many streams already").await;
    }

    for watcher in &mut watchers {
        assert_eq!(watcher.expect("error").await["code"], "agent_busy");
        watcher.expect_close(1000).await;
    }
}

#[actix_web::test]
async fn another_log_is_another_stream_and_so_is_one_that_is_watched_again() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let system = watch(&site, "").await;
    let first = expect_start(&mut agent).await;
    let mut file = watch(&site, "source=file&path=/var/log/app.log").await;
    let second = expect_start(&mut agent).await;
    assert_ne!(first.stream_id, second.stream_id);

    system.socket.close().await;
    assert_eq!(agent.next().await, ServiceMessage::LogsStop { stream_id: first.stream_id });
    let mut again = watch(&site, "").await;
    let third = expect_start(&mut agent).await;
    send_lines(&mut agent, third.stream_id, &["of the system"]).await;
    send_lines(&mut agent, second.stream_id, &["of the file"]).await;

    assert_ne!(first.stream_id, third.stream_id);
    assert_eq!(message(&mut again).await, "of the system");
    assert_eq!(message(&mut file).await, "of the file");
}

#[actix_web::test]
async fn a_watcher_after_a_refusal_asks_the_agent_again() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut refused = watch(&site, "").await;
    let start = expect_start(&mut agent).await;
    fail(&mut agent, start.stream_id, "agent_refused", "logs are off").await;
    refused.expect("error").await;

    let mut allowed = watch(&site, "").await;
    let start = expect_start(&mut agent).await;
    send_lines(&mut agent, start.stream_id, &["on again"]).await;

    assert_eq!(message(&mut allowed).await, "on again");
    refused.expect_close(1000).await;
}

//! One stream of the agent, however many watch.

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

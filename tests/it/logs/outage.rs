//! Watching a server whose agent is away, goes, or comes back.

use super::{expect_start, message, send_lines, watch};
use crate::support::site::Site;

#[actix_web::test]
async fn a_dashboard_learns_that_the_agent_is_away_and_gets_the_log_when_it_is_back() {
    let site = Site::start().await;
    let mut dashboard = watch(&site, "tail=7").await;
    assert_eq!(dashboard.expect("error").await["code"], "agent_offline");
    let mut later = watch(&site, "tail=7").await;
    assert_eq!(later.expect("error").await["code"], "agent_offline");

    let mut agent = site.agent().await;
    let start = expect_start(&mut agent).await;
    send_lines(&mut agent, start.stream_id, &["back"]).await;

    assert_eq!(start.tail, Some(7));
    assert_eq!(message(&mut dashboard).await, "back");
    assert_eq!(message(&mut later).await, "back");
}

#[actix_web::test]
async fn after_an_outage_the_log_continues_without_repeating_anything() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = watch(&site, "tail=7").await;
    let before = expect_start(&mut agent).await;
    send_lines(&mut agent, before.stream_id, &["before"]).await;
    assert_eq!(message(&mut dashboard).await, "before");

    agent.socket.abort();
    assert_eq!(dashboard.expect("error").await["code"], "agent_offline");
    site.until_status("offline").await;
    let mut agent = site.agent().await;
    let after = expect_start(&mut agent).await;
    send_lines(&mut agent, after.stream_id, &["after"]).await;

    assert_eq!(after.tail, Some(0));
    assert_ne!(after.stream_id, before.stream_id);
    assert_eq!(message(&mut dashboard).await, "after");
}

#[actix_web::test]
async fn a_watcher_that_comes_after_an_outage_gets_the_lines_that_were_written_during_it() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut before = watch(&site, "tail=1").await;
    let start = expect_start(&mut agent).await;
    send_lines(&mut agent, start.stream_id, &["before"]).await;
    assert_eq!(message(&mut before).await, "before");
    agent.socket.abort();
    assert_eq!(before.expect("error").await["code"], "agent_offline");
    site.until_status("offline").await;
    let mut agent = site.agent().await;
    assert_eq!(expect_start(&mut agent).await.tail, Some(0));

    let mut after = watch(&site, "tail=1").await;
    let start = expect_start(&mut agent).await;
    send_lines(&mut agent, start.stream_id, &["during"]).await;

    assert_eq!(start.tail, Some(1));
    assert_eq!(message(&mut after).await, "during");
}

#[actix_web::test]
async fn a_newer_session_of_the_agent_takes_the_log_over() {
    let site = Site::start().await;
    let mut first = site.agent().await;
    let mut dashboard = watch(&site, "").await;
    expect_start(&mut first).await;

    let mut second = site.agent().await;
    let start = expect_start(&mut second).await;
    send_lines(&mut second, start.stream_id, &["of the newer"]).await;

    assert_eq!(dashboard.until("log").await["message"], "of the newer");
}

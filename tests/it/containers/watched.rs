//! A container's log on a dashboard, and searched.

use serde_json::json;

use super::Host;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::engine::Engine;

async fn watch(host: &Host, container_id: &str, tail: u32) -> Dashboard {
    let (site, query) = (&host.site, format!("source=container&container_id={container_id}&tail={tail}"));
    let path = format!("/api/v1/ws/logs/{}?{query}", site.server_id);
    Dashboard::open(site.service.address, &path, Pass::Header(&site.owner.token), &[]).await.unwrap()
}

#[actix_web::test]
async fn a_containers_log_is_shown_as_it_is_written() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let container = engine.run("echo out; echo err >&2; sleep 1; echo last; exec sleep 100");

        let mut dashboard = watch(&host, &container.id, 100).await;

        let mut shown = Vec::new();
        for _ in 0..3 {
            let line = dashboard.expect("log").await;
            assert_eq!(line["source"], "container");
            shown.push((line["stream"].clone(), line["message"].clone()));
        }
        shown.sort_by_key(|(stream, message)| (message == "last", stream.to_string()));
        let expected = [("stderr", "err"), ("stdout", "out"), ("stdout", "last")];
        assert_eq!(shown, expected.map(|(stream, message)| (json!(stream), json!(message))));
        container.remove();
        assert_eq!(dashboard.until("error").await["code"], "container_not_found");
        dashboard.expect_close(1000).await;
    }
}

/// 100,000 lines: each is shown, or counted among those that were not.
#[actix_web::test]
async fn a_hundred_thousand_lines_are_shown_or_counted() {
    let engine = Engine::docker();
    let host = Host::with_policy(engine.clone(), "read").await;
    let container = engine.run_in_steps("echo ready; pause; seq 1 100000; exec sleep 1000");
    let mut dashboard = watch(&host, &container.id, 1).await;
    assert_eq!(dashboard.expect("log").await["message"], "ready");

    container.go_on();

    let (mut last, mut dropped) = (0, 0);
    while last < 100_000 {
        let message = dashboard.next().await;
        match message["type"].as_str().unwrap() {
            "dropped" => dropped += message["data"]["count"].as_u64().unwrap(),
            "log" => {
                let number: u64 = message["data"]["message"].as_str().unwrap().parse().unwrap();
                assert_eq!(number, last + dropped + 1, "nothing is missing untold");
                (last, dropped) = (number, 0);
            }
            other => panic!("unexpected: {other}"),
        }
    }
}

#[actix_web::test]
async fn a_containers_log_is_searched() {
    let engine = Engine::docker();
    let host = Host::with_policy(engine.clone(), "read").await;
    let container = engine.run("echo one; echo two >&2; echo twelve; exec sleep 100");
    let path = format!("/logs/{}?source=container&container_id={}&q=tw", host.site.server_id, container.id);

    let found = crate::support::eventually("its lines", async || {
        let search = || host.site.service.client.get(&path).bearer(&host.site.owner.token);
        let answer = host.answer(search).await;
        assert_eq!(answer.status, 200, "{answer}");
        let found = answer.json();
        (found["lines"].as_array().unwrap().len() == 2).then_some(found)
    })
    .await;

    let messages: Vec<_> = found["lines"].as_array().unwrap().iter().map(|line| line["message"].clone()).collect();
    assert!(messages.contains(&json!("two")) && messages.contains(&json!("twelve")), "{messages:?}");
    assert_eq!(found["truncated"], false);
}

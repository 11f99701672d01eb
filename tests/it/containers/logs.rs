//! Logs of containers over the REST API.

use serde_json::{Value, json};

use super::Host;
use crate::support::engine::{Container, Engine};
use crate::support::eventually;

/// The answer to a request for a log, once the container has ended.
async fn log(host: &Host, container: &Container, query: &str) -> Value {
    eventually("the container ends", async || (container.state() == "exited").then_some(())).await;
    host.read(&format!("/{}/logs{query}", container.id)).await
}

/// Waits until the log of a container that runs ends in this line.
async fn until_said(host: &Host, container: &Container, line: &str) {
    eventually("the line is in the log", async || {
        let log = host.read(&format!("/{}/logs", container.id)).await;
        messages(&log).ends_with(&[line]).then_some(())
    })
    .await;
}

fn messages(log: &Value) -> Vec<&str> {
    log["lines"].as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap()).collect()
}

#[actix_web::test]
async fn the_streams_are_kept_apart() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        // An engine reads two streams, and the order of their lines only depends on when it does.
        let container = engine.run_in_steps("echo one; pause; echo two >&2; pause; echo; echo ' three '; printf end");
        for line in ["one", "two"] {
            until_said(&host, &container, line).await;
            container.go_on();
        }

        let both = log(&host, &container, "").await;
        let out = log(&host, &container, "?stderr=false").await;
        let err = log(&host, &container, "?stdout=false&timestamps=true").await;

        assert_eq!(messages(&both), ["one", "two", "", " three ", "end"], "{}", engine.address());
        assert_eq!((&both["container_id"], &both["truncated"]), (&json!(container.id), &json!(false)));
        assert_eq!(both["logs"], "one\ntwo\n\n three \nend\n");
        let streams: Vec<&Value> = both["lines"].as_array().unwrap().iter().map(|line| &line["stream"]).collect();
        assert_eq!(streams, ["stdout", "stderr", "stdout", "stdout", "stdout"]);
        assert_eq!(messages(&out), ["one", "", " three ", "end"]);
        assert_eq!(messages(&err), ["two"]);
        let moment = err["lines"][0]["timestamp"].as_str().unwrap();
        assert_eq!(err["logs"], format!("{moment} two\n"));
    }
}

#[actix_web::test]
async fn the_last_lines_of_one_stream_come_although_the_other_has_newer_ones() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let container = engine.run_in_steps("seq 1 20; pause; seq 1 1000 >&2");
        until_said(&host, &container, "20").await;
        container.go_on();

        let out = log(&host, &container, "?stderr=false&tail=10").await;

        let expected: Vec<String> = (11..=20).map(|number| number.to_string()).collect();
        assert_eq!(messages(&out), expected, "{}", engine.address());
        assert_eq!(out["truncated"], false);
    }
}

/// A script that writes lines of 20,000 bytes, which engines keep in two pieces each.
pub const LONG_LINES: &str =
    "x=$(head -c 20000 /dev/zero | tr '\\0' x); for i in $(seq 1 120); do echo \"$i $x\"; done";

/// The line of this number.
pub fn long_line(number: u32) -> String {
    format!("{number} {}", "x".repeat(20_000))
}

#[actix_web::test]
async fn as_many_long_lines_come_as_were_asked_for() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let container = engine.run(LONG_LINES);

        for tail in [1, 15, 16, 17, 100] {
            let log = log(&host, &container, &format!("?tail={tail}")).await;

            let expected: Vec<String> = (121 - tail..=120).map(long_line).collect();
            assert!(messages(&log) == expected, "{}: {tail}: {:.200?}", engine.address(), messages(&log));
            assert_eq!(log["truncated"], false);
        }
    }
}

#[actix_web::test]
async fn long_lines_and_what_is_no_utf_8_come_whole() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let long = "head -c 200000 /dev/zero | tr '\\0' x; echo; head -c 40000 /dev/zero | tr '\\0' y; echo";
        let container = engine.run(&format!("{long}; printf 'a\\377b\\n'"));

        let log = log(&host, &container, "").await;

        let messages = messages(&log);
        assert_eq!(messages.len(), 3, "{}", engine.address());
        assert_eq!(messages[0], "x".repeat(65_536) + " [134464 bytes left out]");
        assert_eq!(messages[1], "y".repeat(40_000));
        assert_eq!(messages[2], "a\u{fffd}b");
    }
}

#[actix_web::test]
async fn a_terminals_log_is_lines_too() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let script = "echo one; echo two >&2; head -c 40000 /dev/zero | tr '\\0' y; echo; printf '# '";
        let mut read = Value::Null;
        // Where Podman reads a line in two pieces, which a busy machine may bring about, it writes a time before each.
        for _ in 0..5 {
            let container = engine.run_with(script, json!({"Tty": true}));
            read = log(&host, &container, "").await;
            let is_docker = engine.address() == Engine::docker().address();
            if is_docker || !messages(&read).iter().any(|line| line.contains("Z ")) {
                break;
            }
        }

        assert!(
            messages(&read) == ["one", "two", &"y".repeat(40_000), "# "],
            "{}: {:.200?}",
            engine.address(),
            messages(&read)
        );
    }
}

#[actix_web::test]
async fn the_last_lines_of_a_hundred_thousand_are_asked_for() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let container = engine.run("seq 1 100000");

        let hundred = log(&host, &container, "").await;
        let most = log(&host, &container, "?tail=10000").await;
        let none = log(&host, &container, "?tail=0").await;

        let expected = |first: u32| (first..=100_000).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(messages(&hundred), expected(99_901), "{}", engine.address());
        assert_eq!(messages(&most), expected(90_001));
        assert_eq!(messages(&none), [""; 0]);
        host.get(&format!("/{}/logs?tail=10001", container.id))
            .expect_faults(422, &[("query", "tail", "value_error.number.not_le")])
            .await;
    }
}

#[actix_web::test]
async fn a_log_that_is_longer_than_an_answer_loses_its_oldest_lines() {
    let engine = Engine::docker();
    let host = Host::with_policy(engine.clone(), "read").await;
    let container = engine.run("x=$(head -c 1000 /dev/zero | tr '\\0' x); for i in $(seq 5000); do echo $i $x; done");

    let log = log(&host, &container, "?tail=10000").await;

    assert_eq!(log["truncated"], true);
    let messages = messages(&log);
    assert!(messages.last().unwrap().starts_with("5000 x"));
    assert!((2_000..4_000).contains(&messages.len()), "{} lines", messages.len());
}

#[actix_web::test]
async fn a_part_of_a_log_is_selected_by_times() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let container = engine.run("for i in 1 2 3 4 5; do echo $i; sleep 1.1; done");
        let whole = log(&host, &container, "").await;
        let moment = |line: usize| whole["lines"][line]["timestamp"].as_str().unwrap().to_owned();

        let since = log(&host, &container, &format!("?since={}", moment(2))).await;
        let until = log(&host, &container, &format!("?until={}", moment(2))).await;
        let between = log(&host, &container, &format!("?since={}&until={}&tail=1", moment(1), moment(3))).await;

        assert_eq!(messages(&since), ["3", "4", "5"], "{}", engine.address());
        assert_eq!(messages(&until), ["1", "2", "3"]);
        assert_eq!(messages(&between), ["4"]);
        host.get(&format!("/{}/logs?since={}&until={}", container.id, moment(2), moment(1)))
            .expect_faults(422, &[("query", "until", "value_error.range")])
            .await;
    }
}

#[actix_web::test]
async fn a_log_that_the_engine_does_not_keep_is_an_error_in_its_words() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let container = engine.run_with("echo x", json!({"HostConfig": {"LogConfig": {"Type": "none"}}}));

        let answer = host.answer(|| host.get(&format!("/{}/logs", container.id))).await;

        let error = answer.json();
        assert_eq!((answer.status, &error["code"]), (400, &json!("docker_error")), "{answer}");
        assert!(!error["detail"].as_str().unwrap().is_empty(), "{error}");
    }
}

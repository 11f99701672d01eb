//! Other processes on the database of a running service: they may make it wait, and never make it fail.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::join_all;
use serde_json::json;
use tempfile::TempDir;

use crate::support::agent::sample_aged;
use crate::support::command_line::{Outcome, run, signalbox};
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::{registration, text_of, uuid_of};

/// How often each command runs while others write.
const ROUNDS: usize = 8;

/// How many write at the same time.
const WRITERS: usize = 4;

/// Servers that each of them makes at most: all together are a page of the list.
const MAX_SERVERS: usize = 60;

async fn beside(data_dir: &Path, arguments: &[&str]) -> Outcome {
    let mut command = signalbox(arguments);
    command.env("SIGNALBOX_DATA_DIR", data_dir);
    run(command).await
}

/// Writes, each time a read and a write in one transaction, until `is_over`. Returns the names and descriptions of the
/// remaining servers.
async fn write(
    service: &ServiceProcess,
    prepared: &Prepared,
    writer: usize,
    is_over: &AtomicBool,
) -> Vec<(String, String)> {
    let call = |method: &str, path: String| {
        let client = &service.client;
        let call = match method {
            "POST" => client.post(path),
            "PUT" => client.put(path),
            _ => client.delete(path),
        };
        call.bearer(&prepared.token)
    };
    let body = json!({"server_id": prepared.server_id, "metric_type": "cpu", "threshold_value": 99.0,
        "comparison": "gt"});
    let threshold = call("POST", "/alerts/thresholds".to_owned()).json(body).expect(201).await;
    let threshold = text_of(&threshold["id"]);
    let (mut made, mut count) = (Vec::new(), 0);
    while !is_over.load(Ordering::SeqCst) {
        let server = json!({"name": format!("web-{writer}-{count}"), "host": "192.0.2.10"});
        let server = uuid_of(&call("POST", "/servers".to_owned()).json(server).expect(201).await["id"]);
        let changed = json!({"description": format!("changed {count}")});
        call("PUT", format!("/servers/{server}")).json(changed).expect(200).await;
        let value = json!({"threshold_value": count % 90 + 1});
        call("PUT", format!("/alerts/thresholds/{threshold}")).json(value).expect(200).await;
        if made.len() < MAX_SERVERS {
            made.push((format!("web-{writer}-{count}"), format!("changed {count}")));
        } else {
            call("DELETE", format!("/servers/{server}")).expect(200).await;
        }
        count += 1;
    }
    made
}

#[actix_web::test]
async fn no_command_makes_a_write_of_the_service_fail() {
    let (data, target) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let service = ServiceProcess::start(data.path()).await;
    let prepared = service.prepare().await;
    service.client.post("/auth/register").json(registration("alice")).expect(201).await;
    let mut agent = service.agent(&prepared).await;
    let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));

    let writing = join_all((0..WRITERS).map(|writer| write(&service, &prepared, writer, &is_over)));
    let sampling = async {
        while !is_over.load(Ordering::SeqCst) {
            let seq = sent.fetch_add(1, Ordering::SeqCst) + 1;
            agent.store(seq, vec![sample_aged(3_000 - seq as i64)]).await;
        }
    };
    let disturbing = async {
        for round in 0..ROUNDS {
            let copy = target.path().join(format!("{round}.db"));
            beside(data.path(), &["backup", copy.to_str().unwrap()]).await.printed();
            beside(data.path(), &["audit", "verify"]).await.printed();
            beside(data.path(), &["migrate"]).await.printed();
            beside(data.path(), &["user", "reset-password", "alice"]).await.printed();
        }
        is_over.store(true, Ordering::SeqCst);
    };
    let (made, (), ()) = tokio::join!(writing, sampling, disturbing);

    let listed = service.read(&prepared, "/servers?limit=500").await;
    let mut listed: Vec<(String, String)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|server| (text_of(&server["name"]), text_of(&server["description"])))
        .collect();
    let first = ("web-1".to_owned(), String::new());
    let mut expected: Vec<(String, String)> = made.into_iter().flatten().chain([first]).collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    let path = format!("/metrics/{}/history?resolution=raw&max_points=20000", prepared.server_id);
    let kept = service.read(&prepared, &path).await.as_array().unwrap().len() as u64;
    assert_eq!(kept, sent.load(Ordering::SeqCst), "every acknowledged sample");
    assert!(!service.log().contains("locked"), "{}", service.log());
}

//! The disk with the record of what has run is full.

use std::fs::{self, File};
use std::io::{self, ErrorKind};

use serde_json::{Value, json};
use signalbox_protocol::signed::Signed;
use uuid::Uuid;

use crate::host::{Host, Outcome, refusal};
use crate::mount::flags_to_mount;

/// The disk gives out its room in pages of this size.
const PAGE: u64 = 4096;

/// An engine that is not there, so that an order for a container is recorded and then changes nothing.
const POLICY: &str = "commands = \"signed\"\ndocker = \"signed\"\ndocker_host = \"unix:///nonexistent/engine.sock\"\n";

impl Host {
    fn record_bytes(&self) -> u64 {
        fs::metadata(self.path_inside("state/signed-nonces")).map_or(0, |metadata| metadata.len())
    }

    fn container_order(&self) -> Signed {
        let container = [("kind", json!("container")), ("command", Value::Null), ("timeout_seconds", Value::Null)];
        // As long as a nonce may be, so that the record grows fast.
        let nonce = format!("{:0>128}", Uuid::now_v7().simple());
        let changes = [&container[..], &[("action", json!("restart web")), ("nonce", json!(nonce))]].concat();
        self.sign(&self.payload(&changes), &["ada"])
    }

    /// Leaves no room on the agent's disk.
    fn fill_disk(&self) {
        let mut ballast = File::create(self.path_inside("state/ballast")).unwrap();
        let full = io::copy(&mut io::repeat(0), &mut ballast).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    }
}

#[tokio::test]
async fn what_finds_no_room_at_the_end_of_the_record_does_not_run() {
    if flags_to_mount().is_none() {
        return;
    }
    let mut host = Host::stopped(POLICY).await;
    host.small_disk = true;
    fs::create_dir(host.path("state")).unwrap();
    host.run().await;
    // Until the next line begins in the last page of the file and does not fit into it.
    let (mut before, mut line) = (0, 0);
    while line == 0 || before == 0 || PAGE - host.record_bytes() % PAGE >= line {
        before = host.record_bytes();
        let signed = host.container_order();
        let error = host.change_container("restart", "web", Some(signed)).await;
        assert_ne!(error.code, "agent_refused", "{error:?}");
        line = host.record_bytes() - before;
    }

    host.fill_disk();
    let bytes = host.record_bytes();
    let waiting = host.sign(&host.payload(&[("nonce", json!("x".repeat(128)))]), &["ada"]);
    for _ in 0..5 {
        let order = host.order(Some(waiting.clone()));
        match host.ask(order).await {
            Outcome::Refused(detail) => assert!(detail.contains("No space left on device"), "{detail}"),
            Outcome::Ran => panic!("it ran without a record"),
        }
        let error = host.change_container("restart", "web", Some(host.container_order())).await;
        assert_eq!((error.code.as_str(), error.reason.as_deref()), ("agent_refused", None), "{}", error.detail);
    }
    assert_eq!(host.runs(), 0);
    assert!(host.record_bytes() >= bytes, "what was recorded is still there");

    fs::remove_file(host.path_inside("state/ballast")).unwrap();
    let order = host.order(Some(waiting.clone()));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    let order = host.order(Some(waiting));
    assert_eq!(host.ask(order).await, refusal("replayed"));
    assert_eq!(host.runs(), 1);
    host.expect_tries(30);
}

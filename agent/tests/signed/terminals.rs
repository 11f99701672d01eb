//! What a service can do in a terminal that was signed, and when that ends.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use signalbox_protocol::signed::Signed;

use crate::host::{Host, Outcome, eventually, refusal};

impl Host {
    /// What was signed for a terminal, and for a restart of the container `web`, is done once each, and not again.
    pub async fn expect_each_once(&mut self, terminal: Signed, container: Signed) {
        assert_eq!(self.open_terminal(Some(terminal.clone())).await, Outcome::Ran);
        assert_eq!(self.open_terminal(Some(terminal)).await, refusal("replayed"));
        // The agent permits it, so the error is the engine's: there is no such container, or no engine.
        let error = self.change_container("restart", "web", Some(container.clone())).await;
        assert_ne!(error.code, "agent_refused", "{error:?}");
        let error = self.change_container("restart", "web", Some(container)).await;
        assert_eq!(error.reason.as_deref(), Some("replayed"));
    }

    /// A terminal that Ada has signed for some seconds.
    fn signed_terminal(&self, seconds: u32) -> Signed {
        let changes = [("kind", json!("terminal")), ("command", Value::Null), ("timeout_seconds", json!(seconds))];
        self.sign(&self.payload(&changes), &["ada"])
    }

    /// The number in a file, as soon as a whole line is there.
    async fn number_in(&self, name: &str) -> i32 {
        let written = || fs::read_to_string(self.path(name)).ok().filter(|text| text.ends_with('\n'));
        eventually(name, written).await.trim().parse().unwrap()
    }

    async fn until_no_child(&self) {
        eventually("the shell is gone", || (self.children() == 0).then_some(())).await;
    }
}

#[tokio::test]
async fn a_signed_terminal_ends_with_its_time_however_much_is_typed_in_it() {
    let mut host = Host::start().await;
    let signed = host.signed_terminal(1);
    let began = Instant::now();

    let stream_id = host.start_terminal(Some(signed.clone())).await;
    let error = host.type_to_the_end(stream_id).await;

    assert_eq!(
        (error.code.as_str(), error.detail.as_str()),
        ("agent_refused", "the terminal was signed for this long only")
    );
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    host.type_in(stream_id, &format!("{}\n", host.trace())).await;
    host.until_no_child().await;
    assert_eq!(host.open_terminal(Some(signed)).await, refusal("replayed"));
    assert_eq!(host.runs(), 0);
    host.expect_tries(2);
}

/// The documents say so: processes that are meant to outlive a terminal do, as after any other hang-up.
#[tokio::test]
async fn what_was_started_in_a_signed_terminal_may_outlive_it() {
    let mut host = Host::start().await;
    let signed = host.signed_terminal(60);

    let stream_id = host.start_terminal(Some(signed)).await;
    let file = host.path("stays");
    host.type_in(stream_id, &format!("setsid sh -c 'echo $$ > {}; exec sleep 120' &\n", file.display())).await;
    let stays = host.number_in("stays").await;
    assert_eq!(host.children(), 1, "the shell");
    host.stop_terminal(stream_id).await;
    host.until_no_child().await;

    // A process that has ended has no command line any more.
    let is_alive = fs::read_to_string(format!("/proc/{stays}/cmdline")).unwrap_or_default().contains("sleep");
    assert!(is_alive, "{stays}");
    kill_process(Pid::from_raw(stays).unwrap(), Signal::KILL).unwrap();
    host.expect_tries(1);
}

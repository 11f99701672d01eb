//! A clock that was ahead when a message was postponed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};
use signalbox_protocol::Sample;
use tempfile::TempDir;

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::clock::TestClock;
use crate::support::command_line::signalbox;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::receiver::{Reaction, Receiver};
use crate::support::{PASSWORD, eventually, text_of};

const HOUR_MS: i64 = 3_600_000;

/// A service with a clock of its own, and a channel whose receiver answers what the test sets.
struct ClockScene {
    clock: TestClock,
    data_dir: TempDir,
    service: ServiceProcess,
    prepared: Prepared,
    receiver: Receiver,
    answer: Arc<AtomicU16>,
}

async fn serve(data_dir: &TempDir, clock: &TestClock) -> ServiceProcess {
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--notification-networks", "127.0.0.0/8"]);
    command.arg("--data-dir").arg(data_dir.path());
    clock.rule(&mut command);
    ServiceProcess::launched(command).await
}

impl ClockScene {
    async fn start(ahead_ms: i64) -> Self {
        let (clock, data_dir) = (TestClock::new(), TempDir::new().unwrap());
        clock.set_ms(ahead_ms);
        let service = serve(&data_dir, &clock).await;
        let prepared = service.prepare().await;
        let answer = Arc::new(AtomicU16::new(503));
        let answers = answer.clone();
        let receiver = Receiver::start(move |_| Reaction::Answer(answers.load(Ordering::SeqCst))).await;
        let scene = Self { clock, data_dir, service, prepared, receiver, answer };
        let channel = json!({"name": "ops", "type": "webhook", "settings": {"url": scene.receiver.url("/")}});
        scene.post("/notifications/channels", channel).await;
        scene
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.service.client.post(path).bearer(&self.prepared.token).json(body).expect(201).await
    }

    /// A new server whose first sample crosses a threshold.
    async fn alert(&self, name: &str) {
        let server = self.post("/servers", json!({"name": name, "host": "192.0.2.10"})).await;
        let threshold = json!({
            "server_id": server["id"], "metric_type": "cpu", "comparison": "gt", "threshold_value": 90,
        });
        self.post("/alerts/thresholds", threshold).await;
        let key = self.post("/api-keys", json!({"server_id": server["id"], "name": "agent"})).await;
        let mut agent = FakeAgent::online(self.service.address, &text_of(&key["key"])).await;
        agent.store(1, vec![Sample { cpu_percent: 99.0, ..sample_at(self.clock.now()) }]).await;
    }

    /// Comes back when the first attempt has failed.
    async fn put_off(&self) {
        eventually("the first attempt is recorded", async || {
            let told = self.service.read(&self.prepared, "/notifications/deliveries").await;
            // There may have been another one by now.
            (told[0]["attempts"].as_i64() >= Some(1) && told[0]["status"] == "pending").then_some(())
        })
        .await;
    }

    async fn sign_in(&mut self) {
        let form = [("username", "owner"), ("password", PASSWORD)];
        let tokens = self.service.client.post("/auth/login").form(&form).expect(200).await;
        self.prepared.token = text_of(&tokens["access_token"]);
    }

    async fn all_sent(&self, count: usize) {
        eventually("all of them are delivered", async || {
            let told = self.service.read(&self.prepared, "/notifications/deliveries").await;
            let told = told.as_array().unwrap();
            (told.len() == count && told.iter().all(|delivery| delivery["status"] == "sent")).then_some(())
        })
        .await;
    }
}

#[actix_web::test]
async fn a_message_put_off_before_the_clock_was_set_back_goes_out_with_the_next_one() {
    let mut scene = ClockScene::start(HOUR_MS).await;
    scene.alert("web-2").await;
    scene.put_off().await;

    scene.clock.set_ms(0);
    scene.answer.store(200, Ordering::SeqCst);
    // A token that was signed an hour in the future is not valid now.
    scene.sign_in().await;
    scene.alert("web-3").await;

    scene.all_sent(2).await;
}

#[actix_web::test]
async fn a_message_put_off_before_a_restart_at_the_right_time_goes_out() {
    let mut scene = ClockScene::start(72 * HOUR_MS).await;
    scene.alert("web-2").await;
    scene.put_off().await;

    assert_eq!(scene.service.terminate().await.code, Some(0));
    scene.clock.set_ms(0);
    scene.answer.store(200, Ordering::SeqCst);
    scene.service = serve(&scene.data_dir, &scene.clock).await;
    scene.sign_in().await;

    scene.all_sent(1).await;
}

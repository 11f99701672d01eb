//! A service that is killed again and again while samples cross and recover: in the end there is one alert for each time
//! that they crossed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use signalbox_protocol::agent::ServiceMessage;
use signalbox_protocol::{Decoded, Encoding, Sample, Timestamp};

use super::restart::{End, Scene};
use crate::support::agent::FakeAgent;
use crate::support::alerts::{Threshold, busy};
use crate::support::eventually;
use crate::support::socket::Received;

const ROUNDS: u64 = 10;

/// Messages that may be on their way at once, so that a crash always meets some.
const WINDOW: usize = 6;

/// An agent whose every other sample crosses, each with a different value.
struct Stream {
    began: Timestamp,
    made: u64,
    waiting: BTreeMap<u64, Sample>,
}

impl Stream {
    fn new() -> Self {
        Self { began: Timestamp::now(), made: 0, waiting: BTreeMap::new() }
    }

    fn value(number: u64) -> f64 {
        if number.is_multiple_of(2) { 10.0 } else { ((9_000 + number) as f64) / 100.0 }
    }

    fn next(&mut self) -> (u64, Sample) {
        self.made += 1;
        // Later than every one before, and not in the future.
        let at = Timestamp::now().max(self.began.plus_millis(1));
        self.began = at;
        let sample = busy(at, Self::value(self.made));
        self.waiting.insert(self.made, sample.clone());
        (self.made, sample)
    }

    fn acknowledge(&mut self, seq: u64) {
        self.waiting = self.waiting.split_off(&(seq + 1));
    }

    /// Sends again what was not acknowledged.
    async fn resend(&mut self, agent: &mut FakeAgent) {
        for (seq, sample) in &self.waiting {
            agent.send_metrics(*seq, vec![sample.clone()]).await;
        }
    }

    /// Sends until this many more are acknowledged.
    async fn stream(&mut self, agent: &mut FakeAgent, acknowledgements: u64) {
        let goal = self.made + acknowledgements;
        loop {
            while self.waiting.len() < WINDOW {
                let (seq, sample) = self.next();
                agent.send_metrics(seq, vec![sample]).await;
            }
            if self.made - self.waiting.len() as u64 >= goal {
                return;
            }
            match agent.next().await {
                ServiceMessage::Ack { seq } => self.acknowledge(seq),
                other => panic!("expected an ack, got {other:?}"),
            }
        }
    }

    /// Reads the acknowledgements that were sent before the crash.
    async fn read_last_words(&mut self, mut agent: FakeAgent) {
        while let Received::Message(message) = agent.socket.receive().await {
            let message = Encoding::Json.decode::<ServiceMessage>(&message.into_data()).unwrap();
            if let Decoded::Known(ServiceMessage::Ack { seq }) = message {
                self.acknowledge(seq);
            }
        }
    }
}

fn value_of(alert: &Value) -> f64 {
    alert["value"].as_f64().unwrap()
}

#[actix_web::test]
async fn every_crossing_has_one_alert_however_often_the_service_is_killed() {
    let mut scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(50.0)).await;
    let mut stream = Stream::new();

    for round in 0..ROUNDS {
        let mut agent = scene.service.agent(&scene.prepared).await;
        stream.resend(&mut agent).await;
        stream.stream(&mut agent, round % 4).await;
        // The crash comes at another moment each time.
        tokio::time::sleep(Duration::from_millis(round * 37 % 90)).await;
        scene = scene.again(End::Kill).await;
        stream.read_last_words(agent).await;

        // Everything that was acknowledged exists, and nothing twice.
        let alerts = scene.alarms().of_threshold(threshold).await;
        let mut values: Vec<f64> = alerts.iter().map(value_of).collect();
        values.sort_by(f64::total_cmp);
        let mut once = values.clone();
        once.dedup();
        assert_eq!(values, once, "round {round}: a crossing has two alerts");
        let open = alerts.iter().filter(|alert| alert["status"] != "resolved").count();
        assert!(open <= 1, "round {round}: {alerts:?}");
    }
    let mut agent = scene.service.agent(&scene.prepared).await;
    stream.resend(&mut agent).await;
    let (seq, sample) = stream.next();
    agent.send_metrics(seq, vec![sample]).await;
    let (seq, sample) = stream.next();
    agent.send_metrics(seq, vec![sample]).await;
    agent.expect_ack(seq).await;
    agent.store(seq + 1, Vec::new()).await;

    let crossings: Vec<f64> = (1..=stream.made).map(Stream::value).filter(|value| *value > 50.0).collect();
    let is_of_last = |alert: &Value| value_of(alert) == Stream::value(stream.made);
    let alerts = eventually("every crossing has its alert, and every end", async || {
        let alerts = scene.alarms().of_threshold(threshold).await;
        let has_ended = |alert: &&Value| is_of_last(alert) || alert["status"] == "resolved";
        (alerts.iter().filter(has_ended).count() >= crossings.len()).then_some(alerts)
    })
    .await;
    let mut values: Vec<f64> = alerts.iter().map(value_of).collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(values, crossings, "{} samples", stream.made);
    for alert in &alerts {
        let is_last = is_of_last(alert);
        assert_eq!(alert["status"], if is_last { "active" } else { "resolved" }, "{alert}");
        assert_eq!(alert["peak_value"], alert["value"], "{alert}");
        let ended = if is_last { vec!["triggered"] } else { vec!["triggered", "resolved"] };
        assert_eq!(scene.alarms().timeline(alert).await, ended);
    }
}

//! Acknowledged samples survive a crash of the service, and others are accepted when they are sent again.

use std::collections::BTreeMap;

use signalbox_protocol::agent::ServiceMessage;
use signalbox_protocol::{Decoded, Encoding, Sample, Timestamp};
use tempfile::TempDir;

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::socket::Received;
use crate::support::text_of;

/// How many acknowledgements a round awaits before the crash: right at the start, and ever deeper into the stream.
const ACKS_BEFORE_CRASH: [u64; 5] = [0, 1, 3, 10, 40];

/// Batches that may be on their way at once, so that a crash always meets some that are not acknowledged.
const WINDOW: u64 = 16;

const BATCH: u64 = 5;

/// An agent's side of the promise: what it has made, and what the service acknowledged.
struct Stream {
    began: Timestamp,
    made: u64,
    seq: u64,
    unacknowledged: BTreeMap<u64, Vec<Sample>>,
}

impl Stream {
    fn new() -> Self {
        let began = Timestamp::now().plus_millis(-3_000_000);
        Self { began, made: 0, seq: 0, unacknowledged: BTreeMap::new() }
    }

    /// The sample of that number: 100 ms after the one before it.
    fn sample(&self, number: u64) -> Sample {
        let percent = (number % 100) as f64;
        Sample { cpu_percent: percent, ..sample_at(self.began.plus_millis(100 * number as i64)) }
    }

    fn next_batch(&mut self) -> (u64, Vec<Sample>) {
        let samples: Vec<_> = (self.made..self.made + BATCH).map(|number| self.sample(number)).collect();
        self.made += BATCH;
        self.seq += 1;
        self.unacknowledged.insert(self.seq, samples.clone());
        (self.seq, samples)
    }

    /// Takes note of everything up to `seq`.
    fn acknowledge(&mut self, seq: u64) {
        self.unacknowledged = self.unacknowledged.split_off(&(seq + 1));
    }

    /// The times of all the samples that the service has said it has.
    fn acknowledged_times(&self) -> Vec<String> {
        let missing: Vec<Timestamp> = self.unacknowledged.values().flatten().map(|sample| sample.timestamp).collect();
        let all = (0..self.made).map(|number| self.sample(number).timestamp);
        all.filter(|time| !missing.contains(time)).map(|time| time.to_string()).collect()
    }

    /// Sends again what was not acknowledged.
    async fn resend(&mut self, agent: &mut FakeAgent) {
        for (seq, samples) in &self.unacknowledged {
            agent.send_metrics(*seq, samples.clone()).await;
        }
        if let Some(last) = self.unacknowledged.keys().next_back() {
            agent.expect_ack(*last).await;
        }
        self.unacknowledged.clear();
    }

    /// Sends until this many batches are acknowledged, and leaves others in transit.
    async fn stream(&mut self, agent: &mut FakeAgent, acks: u64) {
        let goal = self.seq + acks;
        loop {
            while self.unacknowledged.len() < WINDOW as usize {
                let (seq, samples) = self.next_batch();
                agent.send_metrics(seq, samples).await;
            }
            let acknowledged = self.seq - self.unacknowledged.len() as u64;
            if acknowledged >= goal {
                return;
            }
            match agent.next().await {
                ServiceMessage::Ack { seq } => self.acknowledge(seq),
                other => panic!("expected an ack, got {other:?}"),
            }
        }
    }

    /// Reads the acknowledgements that were sent before the crash.
    async fn read_last_words(&mut self, mut agent: FakeAgent, encoding: Encoding) {
        while let Received::Message(message) = agent.socket.receive().await {
            let message = encoding.decode::<ServiceMessage>(&message.into_data()).unwrap();
            if let Decoded::Known(ServiceMessage::Ack { seq }) = message {
                self.acknowledge(seq);
            }
        }
    }
}

async fn stored_times(service: &ServiceProcess, prepared: &Prepared) -> Vec<String> {
    let path = format!("/metrics/{}/history?resolution=raw&max_points=20000", prepared.server_id);
    let history = service.read(prepared, &path).await;
    history.as_array().unwrap().iter().map(|sample| text_of(&sample["timestamp"])).collect()
}

#[actix_web::test]
async fn acknowledged_samples_outlive_kill_9_and_the_others_arrive_after_it() {
    let directory = TempDir::new().unwrap();
    let mut service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let mut stream = Stream::new();

    for acks in ACKS_BEFORE_CRASH {
        let mut agent = FakeAgent::online_in(service.address, &prepared.key, Encoding::MessagePack).await;
        stream.resend(&mut agent).await;
        stream.stream(&mut agent, acks).await;
        assert!(!stream.unacknowledged.is_empty(), "the crash meets batches on their way");
        service.kill().await;
        stream.read_last_words(agent, Encoding::MessagePack).await;

        service = ServiceProcess::start(directory.path()).await;
        let stored = stored_times(&service, &prepared).await;
        let lost: Vec<_> = stream.acknowledged_times().into_iter().filter(|time| !stored.contains(time)).collect();
        assert!(lost.is_empty(), "after {acks} acks: {lost:?} of {}", stream.made);
    }

    let mut agent = FakeAgent::online_in(service.address, &prepared.key, Encoding::MessagePack).await;
    stream.resend(&mut agent).await;
    // Every sample, each once, in order.
    assert_eq!(stored_times(&service, &prepared).await, stream.acknowledged_times());
}

#[actix_web::test]
async fn users_keys_and_tokens_outlive_kill_9() {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let mut agent = service.agent(&prepared).await;
    agent.store(1, vec![sample_at(Timestamp::now())]).await;
    let latest = service.read(&prepared, &format!("/metrics/{}", prepared.server_id)).await;
    service.kill().await;

    let service = ServiceProcess::start(directory.path()).await;

    assert_eq!(service.read(&prepared, &format!("/metrics/{}", prepared.server_id)).await, latest);
    assert_eq!(service.read(&prepared, "/servers").await[0]["status"], "offline");
    let mut agent = service.agent(&prepared).await;
    agent.store(2, vec![sample_at(Timestamp::now())]).await;
}

//! An agent with a huge number of names, and an owner who requests all of them at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix_web::rt::System;
use futures_util::future::join_all;
use serde_json::{Value, json};
use signalbox_protocol::sample::ContainerUsage;
use signalbox_protocol::{Encoding, Sample, Timestamp};
use tempfile::TempDir;

use crate::support::agent::{FakeAgent, sample_aged, sample_at};
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::{eventually, registration, text_of};

const SAMPLES: i64 = 120;
const CONTAINERS: i64 = 1_024;

const SPACING_MS: i64 = 10;

/// A neighbour that waits longer for an acknowledgement is starved. This is a debug build on a machine that may be so busy that it
/// takes fifteen times as long (24 s were seen), so it says nothing about a release.
const SLOWEST_ACK: Duration = Duration::from_secs(60);

const MAX_MEBIBYTES: u64 = 800;

const HOUR_MS: i64 = 3_600_000;

/// When the first sample was taken: all of them are in one hour.
fn begin() -> i64 {
    let now = Timestamp::now().as_millis();
    (now - SAMPLES * SPACING_MS).max(now.div_euclid(HOUR_MS) * HOUR_MS)
}

/// A sample whose containers were in none before.
fn sample_of_new_containers(number: i64, at: i64) -> Sample {
    let container = |nth: i64| ContainerUsage {
        id: format!("{number:032x}{nth:032x}"),
        name: format!("build-{number}-{nth}"),
        cpu_percent: 1.5,
        memory_bytes: 1_000_000,
        ..ContainerUsage::default()
    };
    Sample { containers: (0..CONTAINERS).map(container).collect(), ..sample_at(Timestamp::from_millis(at)) }
}

/// Another user's agent, which sends a sample as soon as the last one is acknowledged.
struct Neighbour {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Neighbour {
    fn start(address: SocketAddr, key: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let thread = std::thread::spawn(move || {
            System::new().block_on(async move {
                let mut agent = FakeAgent::online(address, &key).await;
                let mut slowest = Duration::ZERO;
                for seq in 1.. {
                    let began = Instant::now();
                    agent.store(seq, vec![sample_aged(0)]).await;
                    slowest = slowest.max(began.elapsed());
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                slowest
            })
        });
        Self { is_over, thread }
    }

    /// Returns the longest time of an acknowledgement.
    fn stop(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

async fn neighbours_key(service: &ServiceProcess) -> String {
    let account = service.client.post("/auth/register").json(registration("neighbour")).expect(201).await;
    let token = text_of(&account["access_token"]);
    let body = json!({"name": "theirs", "host": "192.0.2.11"});
    let server = service.client.post("/servers").bearer(&token).json(body).expect(201).await;
    let body = json!({"server_id": server["id"], "name": "agent"});
    let key = service.client.post("/api-keys").bearer(&token).json(body).expect(201).await;
    text_of(&key["key"])
}

async fn send_many_names(service: &ServiceProcess, prepared: &Prepared) {
    let mut agent = FakeAgent::online_in(service.address, &prepared.key, Encoding::MessagePack).await;
    let begin = begin();
    for number in 0..SAMPLES {
        let sample = sample_of_new_containers(number, begin + number * SPACING_MS);
        agent.store(number as u64 + 1, vec![sample]).await;
    }
}

fn names(answer: &Value) -> Vec<&str> {
    answer["names"].as_array().unwrap().iter().map(|series| series["name"].as_str().unwrap()).collect()
}

#[actix_web::test]
async fn twelve_who_ask_for_a_hundred_thousand_names_disturb_nobody() {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let key = neighbours_key(&service).await;
    send_many_names(&service, &prepared).await;
    let server = format!("/servers/{}", prepared.server_id);
    eventually("series were left out", || async {
        (service.read(&prepared, &server).await["series_dropped"].as_u64().unwrap() > 0).then_some(())
    })
    .await;
    let neighbour = Neighbour::start(service.address, key);
    let began = Instant::now();

    let path = format!("/metrics/{}/names", prepared.server_id);
    let ask = || service.client.get(&path).bearer(&prepared.token).expect(200);
    let answers = join_all((0..12).map(|_| ask())).await;

    let (took, slowest, peak) = (began.elapsed(), neighbour.stop(), service.peak_mebibytes());
    eprintln!("12 answers took {took:?}; the slowest acknowledgement {slowest:?}; {peak} MiB at most");
    assert!(slowest < SLOWEST_ACK, "an acknowledgement took {slowest:?}");
    assert!(peak < MAX_MEBIBYTES, "{peak} MiB");
    for answer in &answers {
        let names = names(answer);
        assert!(names.len() == 5_000 && answer["truncated"] == true, "{} names", names.len());
        assert!(names.is_sorted() && names.contains(&"cpu_percent") && names.contains(&"disk_used:/"));
    }
}

#[actix_web::test]
async fn the_other_reads_of_many_names_are_bounded_too() {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let key = neighbours_key(&service).await;
    send_many_names(&service, &prepared).await;
    let neighbour = Neighbour::start(service.address, key);

    let of_server =
        ["series", "series?names=cpu_percent", "history?resolution=raw", "history?max_points=10", "prometheus"]
            .map(|read| format!("/metrics/{}/{read}", prepared.server_id));
    let of_all = ["fleet", "prometheus"].map(|read| format!("/metrics/{read}"));
    let tables = ["series?names=cpu_percent", "history"].map(|read| format!("/metrics/{}/{read}", prepared.server_id));
    let reads = of_server.iter().chain(&of_all).map(|path| (path, "application/json"));
    let reads = reads.chain(tables.iter().map(|path| (path, "text/csv")));
    let statuses = join_all(reads.map(|(path, accept)| {
        let call = service.client.get(path).bearer(&prepared.token).header("Accept", accept);
        async move { (path, call.send().await.status) }
    }))
    .await;

    let (slowest, peak) = (neighbour.stop(), service.peak_mebibytes());
    eprintln!("the slowest acknowledgement {slowest:?}; {peak} MiB at most; {statuses:?}");
    // Too much for one answer is 400 and says what to request instead.
    assert!(statuses.iter().all(|(_, status)| [200, 400].contains(status)), "{statuses:?}");
    assert!(slowest < SLOWEST_ACK, "an acknowledgement took {slowest:?}");
    assert!(peak < MAX_MEBIBYTES, "{peak} MiB");
}

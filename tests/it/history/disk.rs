//! A disk that is nearly full: agents keep their samples, and none is lost or stored twice.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use signalbox::config::MIN_FREE_BYTES;
use signalbox_protocol::agent::ServiceMessage;
use signalbox_protocol::{Encoding, Sample, Timestamp};

use super::scene::still;
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::mount::flags_to_mount;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::site::Site;
use crate::support::socket::Received;
use crate::support::{Client, PATIENCE, TestService, eventually, registration, text_of};

/// The code of the close that asks an agent to send again.
const OVERLOADED: u16 = 1013;

/// Megabytes of the small disk, and how many of them must stay free.
const DISK: u64 = 64;
const FLOOR: u64 = 16;

fn times(samples: &[Sample]) -> Vec<String> {
    samples.iter().map(|sample| sample.timestamp.to_string()).collect()
}

#[actix_web::test]
async fn below_the_floor_samples_are_shown_and_not_kept() {
    let site = Site::start_with(|config| {
        still(config);
        config.min_free_bytes = u64::MAX;
        // This tests an embedded database, whatever the other tests use.
        config.database_url = None;
    })
    .await;
    let samples = [sample_aged(20), sample_aged(10)];
    let mut dashboard = site.dashboard().await;
    let mut agent = site.agent().await;
    agent.send_metrics(1, vec![samples[0].clone()]).await;
    assert_eq!(dashboard.until("metrics").await["timestamp"], samples[0].timestamp.to_string());
    // The socket is read on.
    agent.send_metrics(2, vec![samples[1].clone()]).await;
    assert_eq!(dashboard.until("metrics").await["timestamp"], samples[1].timestamp.to_string());
    assert_eq!(site.latest().await["timestamp"], samples[1].timestamp.to_string());
    assert!(site.raw_timestamps().await.is_empty(), "nothing is kept");
    let not_ready = site.service.root.get("/readyz").expect_error(503, "not_ready").await;
    assert_eq!(not_ready["part"], "disk");
    site.service.root.get("/healthz").expect(200).await;
    drop(dashboard);

    let Site { service, owner, server_id, key } = site;
    let storage = service.stop().await;

    while let Received::Message(message) = agent.socket.receive().await {
        let text = message.into_text().unwrap();
        assert!(!text.contains("\"ack\""), "{text}");
    }
    let service = TestService::start_on(storage, |config| {
        still(config);
        config.min_free_bytes = 0;
        config.database_url = None;
    })
    .await;
    let site = Site { service, owner, server_id, key };
    assert!(site.raw_timestamps().await.is_empty(), "what was not acknowledged was not kept either");
    let mut agent = site.agent().await;
    agent.store(1, samples.to_vec()).await;
    assert_eq!(site.raw_timestamps().await, times(&samples));
    site.service.root.get("/readyz").expect(200).await;
}

#[actix_web::test]
async fn the_floor_is_for_an_embedded_database_alone() {
    let site = Site::start_with(|config| {
        still(config);
        // On PostgreSQL the disk here is not the one that fills.
        config.min_free_bytes = if config.is_embedded() { MIN_FREE_BYTES.min(1) } else { u64::MAX };
    })
    .await;
    let sample = sample_aged(10);

    site.agent().await.store(1, vec![sample.clone()]).await;

    assert_eq!(site.raw_timestamps().await, [sample.timestamp.to_string()]);
    site.service.root.get("/readyz").expect(200).await;
}

/// A service whose data is on a small disk in memory, which only it sees and which ends with it.
struct OnSmallDisk {
    service: ServiceProcess,
    root: Client,
    prepared: Prepared,
    ballast: PathBuf,
}

impl OnSmallDisk {
    /// None where such a disk cannot be created.
    async fn start() -> Option<Self> {
        Self::with_floor(FLOOR).await
    }

    async fn with_floor(floor: u64) -> Option<Self> {
        let flags = flags_to_mount()?;
        let serve = format!("exec \"$0\" serve --listen 127.0.0.1:0 --data-dir /mnt --min-free-disk {floor}");
        let mut command = Command::new("unshare");
        command
            .args([flags, "--", "sh", "-c"])
            .arg(format!("mount -t tmpfs -o size={DISK}m tmpfs /mnt && {serve}"))
            .arg(env!("CARGO_BIN_EXE_signalbox"));
        let service = ServiceProcess::launched(command).await;
        let root = Client::new(format!("http://{}", service.address));
        let prepared = service.prepare().await;
        let ballast = PathBuf::from(format!("/proc/{}/root/mnt/ballast", service.id()));
        Some(Self { service, root, prepared, ballast })
    }

    /// Leaves so little room that no samples are accepted, and waits until the service notices.
    async fn fill(&self) {
        let ballast = File::create(&self.ballast).unwrap();
        rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), 0, (DISK - FLOOR) << 20).unwrap();
        self.until_ready_is(503).await;
    }

    /// Leaves no room at all.
    fn fill_up(&self) {
        let mut ballast = File::create(&self.ballast).unwrap();
        let full = io::copy(&mut io::repeat(0), &mut ballast).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
    }

    async fn empty(&self) {
        std::fs::remove_file(&self.ballast).unwrap();
        self.until_ready_is(200).await;
    }

    async fn until_ready_is(&self, status: u16) {
        eventually("the disk is noticed", async || {
            (self.root.get("/readyz").send().await.status == status).then_some(())
        })
        .await;
    }

    async fn agent(&self) -> FakeAgent {
        FakeAgent::online_in(self.service.address, &self.prepared.key, Encoding::MessagePack).await
    }

    async fn kept(&self) -> Vec<String> {
        let path = format!("/metrics/{}/history?resolution=raw&max_points=20000", self.prepared.server_id);
        let history = self.service.read(&self.prepared, &path).await;
        history.as_array().unwrap().iter().map(|sample| text_of(&sample["timestamp"])).collect()
    }

    /// How many commits of samples have failed.
    async fn failed_commits(&self) -> u64 {
        let text = self.root.get("/metrics").expect_answer(200).await.text;
        let line = text.lines().find(|line| line.starts_with("signalbox_commits_failed_total "));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// Waits until this sample is the latest that is shown.
    async fn until_shown(&self, sample: &Sample) {
        let path = format!("/metrics/{}", self.prepared.server_id);
        eventually("the sample is shown", async || {
            let latest = self.service.read(&self.prepared, &path).await;
            (latest["timestamp"] == sample.timestamp.to_string()).then_some(())
        })
        .await;
    }
}

/// This many samples of the last minutes, a second apart.
fn samples(count: i64) -> Vec<Sample> {
    let now = Timestamp::now();
    let aged = |age: i64| Sample { timestamp: now.plus_millis(-1000 * age), ..sample_aged(0) };
    (1..=count).rev().map(aged).collect()
}

#[actix_web::test]
async fn the_one_batch_that_waits_is_taken_when_there_is_room_again() {
    let Some(scene) = OnSmallDisk::start().await else { return };
    let samples = samples(40);
    let mut agent = scene.agent().await;
    agent.store(1, samples[..20].to_vec()).await;
    scene.fill().await;
    agent.send_metrics(2, samples[20..].to_vec()).await;
    scene.until_shown(&samples[39]).await;
    assert_eq!(scene.kept().await, times(&samples[..20]));

    scene.empty().await;

    assert_eq!(agent.next().await, ServiceMessage::Ack { seq: 2 });
    assert_eq!(scene.kept().await, times(&samples));
    scene.service.terminate().await.printed();
}

#[actix_web::test]
async fn what_did_not_wait_is_asked_for_again_and_there_once() {
    let Some(scene) = OnSmallDisk::start().await else { return };
    let samples = samples(60);
    let mut agent = scene.agent().await;
    agent.store(1, samples[..10].to_vec()).await;
    scene.fill().await;
    for (seq, some) in (2..).zip(samples[10..].chunks(10)) {
        agent.send_metrics(seq, some.to_vec()).await;
    }
    scene.until_shown(&samples[59]).await;

    scene.empty().await;

    // The agent removes what is acknowledged before the close.
    let mut acknowledged = 1;
    loop {
        match agent.socket.receive().await {
            Received::Message(message) => {
                let message = Encoding::MessagePack.decode::<ServiceMessage>(&message.into_data()).unwrap();
                let signalbox_protocol::Decoded::Known(ServiceMessage::Ack { seq }) = message else { continue };
                acknowledged = seq;
            }
            Received::Closed(code) => break assert_eq!(code, OVERLOADED),
            Received::Broken => panic!("the connection ended without a close frame"),
        }
    }
    let kept = scene.kept().await;
    assert!(times(&samples[..10 * acknowledged as usize]).iter().all(|time| kept.contains(time)), "{acknowledged}");
    let mut agent = scene.agent().await;
    agent.store(7, samples[10..].to_vec()).await;
    assert_eq!(scene.kept().await, times(&samples));
    scene.service.terminate().await.printed();
}

#[actix_web::test]
async fn writes_are_kept_after_one_for_which_there_was_no_room() {
    let Some(scene) = OnSmallDisk::start().await else { return };
    let OnSmallDisk { service, prepared, .. } = &scene;
    let add = |name: &str| {
        let body = json!({"name": name, "host": "192.0.2.10"});
        service.client.post("/servers").bearer(&prepared.token).json(body)
    };
    scene.fill_up();
    eventually("there is no room for a write", async || (add("web-2").send().await.status == 503).then_some(())).await;
    scene.empty().await;

    // It begins to write, and takes that back.
    service.client.post("/auth/register").json(registration("owner")).expect_refusal(400).await;
    let added = add("web-3").expect(201).await;

    // Another connection to the database reads it.
    let path = format!("/servers/{}", text_of(&added["id"]));
    assert_eq!(service.read(prepared, &path).await["name"], "web-3");
    scene.service.terminate().await.printed();
}

/// Without a floor, nothing but a write shows that the disk is full.
#[actix_web::test]
async fn the_first_commit_without_room_makes_the_service_unready_and_the_log_stays_short() {
    let Some(scene) = OnSmallDisk::with_floor(0).await else { return };
    let mut agent = scene.agent().await;
    let samples = samples(100);
    let began = Instant::now();
    scene.fill_up();
    // Some may still fit into the space that the database's files have.
    for seq in 1.. {
        agent.send_metrics(seq, samples.clone()).await;
        if scene.failed_commits().await > 0 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "every commit finds room");
    }

    let not_ready = scene.root.get("/readyz").expect_error(503, "not_ready").await;
    assert_eq!(not_ready["part"], "database");
    eventually("it is tried again", async || (scene.failed_commits().await >= 6).then_some(())).await;
    let log = scene.service.log();
    let is_full = |line: &&str| line.contains("samples could not be written") && line.contains("disk is full");
    let lines = log.lines().filter(is_full).count() as u64;
    assert!((1..=1 + began.elapsed().as_secs() / 60).contains(&lines), "{log}");
    scene.empty().await;

    let is_over = || scene.service.log().contains("samples can be written again");
    eventually("the log says so", async || is_over().then_some(())).await;
    scene.service.terminate().await.printed();
}

//! Clients that start a download and read nothing.

use std::fs::File;
use std::net::Ipv4Addr;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::raw::RawSocket;
use crate::support::socket::connect_from;
use crate::support::{Client, TestService};

/// As many as one address may download at a time: half of all.
const MOST_OF_AN_ADDRESS: usize = 32;

/// More than the kernel takes for a peer that reads nothing.
const LONG: u64 = 16 * 1024 * 1024;

const SLOW: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 21);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 22);

/// A service with a long program and a short one, and clients at one address that read nothing of the long one.
struct Scene {
    service: TestService,
    idle: Vec<RawSocket>,
    _programs: TempDir,
}

impl Scene {
    /// Downloads whose clients take nothing for this long end.
    async fn new(pause: Duration) -> Self {
        let programs = TempDir::new().unwrap();
        let path = |name: &str| programs.path().join(name);
        File::create(path("signalbox-agent-linux-long")).unwrap().set_len(LONG).unwrap();
        File::create(path("signalbox-agent-linux-short")).unwrap().set_len(1).unwrap();
        let directory = programs.path().to_owned();
        let service = TestService::start_with(|config| {
            config.install_dir = Some(directory);
            config.timing.downloads.pause = pause;
        })
        .await;
        let mut idle = Vec::new();
        for _ in 0..MOST_OF_AN_ADDRESS {
            let mut socket = RawSocket::over(connect_from(SLOW, service.address).await);
            let request = "GET /install/signalbox-agent-linux-long HTTP/1.1\r\nHost: localhost\r\n\r\n";
            socket.write(request.as_bytes()).await.unwrap();
            assert_eq!(socket.status().await, 200);
            idle.push(socket);
        }
        Self { service, idle, _programs: programs }
    }

    /// What a download of the short program is answered.
    async fn download(&self, from: Ipv4Addr, status: u16) -> String {
        let client = Client::from_address(format!("http://{}", self.service.address), from);
        client.get("/install/signalbox-agent-linux-short").expect_answer(status).await.text
    }
}

#[actix_web::test]
async fn clients_that_read_nothing_block_no_others() {
    let scene = Scene::new(Duration::from_secs(1)).await;

    // One of theirs loses its place first.
    let answer = scene.download(SLOW, 200).await;

    assert_eq!(answer, "\0");
}

#[actix_web::test]
async fn clients_of_one_address_that_read_nothing_block_nobody_elsewhere() {
    let scene = Scene::new(Duration::from_secs(3_600)).await;

    assert_eq!(scene.download(OTHER, 200).await, "\0");
    let refused = scene.download(SLOW, 503).await;

    assert!(refused.contains("busy"), "{refused}");
    assert_eq!(scene.idle.len(), MOST_OF_AN_ADDRESS);
}

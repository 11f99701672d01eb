//! Clients that start a download and read nothing.

use std::fs::File;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::TestService;
use crate::support::raw::RawSocket;

/// As many as may download at a time.
const EVERY_PLACE: usize = 64;

/// More than the kernel takes for a peer that reads nothing.
const LONG: u64 = 16 * 1024 * 1024;

#[actix_web::test]
async fn clients_that_read_nothing_block_no_others() {
    let programs = TempDir::new().unwrap();
    let path = |name: &str| programs.path().join(name);
    File::create(path("signalbox-agent-linux-long")).unwrap().set_len(LONG).unwrap();
    File::create(path("signalbox-agent-linux-short")).unwrap().set_len(1).unwrap();
    let directory = programs.path().to_owned();
    let service = TestService::start_with(|config| {
        config.install_dir = Some(directory);
        config.timing.downloads.pause = Duration::from_secs(1);
    })
    .await;
    let mut idle = Vec::new();

    for _ in 0..EVERY_PLACE {
        let mut socket = RawSocket::connect(service.address).await;
        let request = "GET /install/signalbox-agent-linux-long HTTP/1.1\r\nHost: localhost\r\n\r\n";
        socket.write(request.as_bytes()).await.unwrap();
        assert_eq!(socket.status().await, 200);
        idle.push(socket);
    }

    let answer = service.root.get("/install/signalbox-agent-linux-short").expect_answer(200).await;
    assert_eq!(answer.text, "\0");
}

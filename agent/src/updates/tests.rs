use std::thread;

use super::*;
use crate::updates::record::{Record, Taken, directory};

/// An agent that runs a build that was started twice.
fn taken(state_dir: &std::path::Path) -> Updates {
    let offer = UpdateOffer { release: "e30=".to_owned(), signature: "sig".to_owned() };
    let taken = Taken { version: "1.4.0".to_owned(), sha256: "ab".repeat(32), offer, starts: 2 };
    let mut record = Record::default();
    record.taken = Some(taken);
    record.write(&directory(state_dir)).unwrap();
    let mut config = Config::new("http://localhost", "sbk_test").unwrap();
    config.state_dir = Some(state_dir.to_owned());
    config.updates.running.role = Role::Taken;
    Updates::new(&config)
}

/// Waits until the record says that the build works.
#[expect(clippy::disallowed_methods, reason = "no worker thread is blocked")]
fn written(state_dir: &std::path::Path) -> impl FnOnce() -> bool + Send + 'static {
    let directory = directory(state_dir);
    move || {
        (0..1_000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            Record::read(&directory).unwrap().taken.unwrap().starts == 0
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_build_works_once_it_has_stayed_connected() {
    let state = tempfile::tempdir().unwrap();
    let updates = taken(state.path());
    let starts = || Record::read(&directory(state.path())).unwrap().taken.unwrap().starts;
    let settled = Timing::default().stable;
    let second = Duration::from_secs(1);

    let scenario = async {
        for _ in 0..3 {
            let connected = updates.connected();
            sleep(settled - second).await;
            drop(connected);
            sleep(second).await;
        }
        let early = starts();
        let _connected = updates.connected();
        sleep(settled + second).await;
        // Its thread has a clock of its own.
        let written = tokio::task::spawn_blocking(written(state.path())).await.unwrap();
        (early, written)
    };

    tokio::select! {
        (early, written) = scenario => assert_eq!((early, written), (2, true)),
        _ = updates.noting_success() => panic!("it ends"),
    }
}

//! A copy that is taken while the service runs, and restored as docs/operate/database.md says.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use signalbox::config::Config;
use signalbox_protocol::{Sample, Timestamp};
use tempfile::TempDir;

use super::scene::{HOUR, MINUTE, SECOND, Scene, days_ago, every, rich, rows};
use crate::support::command_line::{run, signalbox};

/// Samples of a message that is sent during the copy.
const BATCH: i64 = 20;

/// The most samples that are sent during the copy: the range that is read has room for 9,000, and some come later.
const MOST: usize = 8_000;

/// PostgreSQL's own tools copy its data.
fn embedded(config: &mut Config) {
    config.database_url = None;
}

/// docs/operate/database.md's way of putting a copy in place.
fn put_in_place(copy: &Path, data_dir: &Path) {
    std::fs::copy(copy, data_dir.join("signalbox.db")).unwrap();
    for rest in ["signalbox.db-wal", "signalbox.db-shm"] {
        // A service that ended in good order has removed them itself.
        _ = std::fs::remove_file(data_dir.join(rest));
    }
}

#[actix_web::test]
async fn a_copy_taken_while_samples_come_in_has_the_history_up_to_then() {
    let mut scene = Scene::with(20 * SECOND, embedded).await;
    let sealed = days_ago(2) + 20 * HOUR;
    scene.send(every(MINUTE, (sealed, sealed + 6 * HOUR), rich)).await;
    scene.settle().await;
    let hour = Timestamp::now().as_millis() / HOUR * HOUR;
    scene.send(every(MINUTE, (hour - HOUR, hour), rich)).await;
    assert!(rows(&scene.site.service, "history_blocks", "TRUE").await > 0, "there are blocks");
    let target = TempDir::new().unwrap();
    let copy = target.path().join("copy.db");
    let mut backup = signalbox(&["backup", copy.to_str().unwrap()]);
    backup.env("SIGNALBOX_DATA_DIR", &scene.site.service.state.config.data_dir);

    let live = hour + 5 * MINUTE;
    let is_copied = Cell::new(false);
    let mut sent: Vec<Sample> = Vec::new();
    let sending = async {
        while !is_copied.get() {
            if sent.len() >= MOST {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            let from = live + sent.len() as i64 * 100;
            let batch = every(100, (from, from + BATCH * 100), rich);
            scene.send_unnoticed(batch.clone()).await;
            sent.extend(batch);
        }
    };
    let copying = async {
        run(backup).await.printed();
        is_copied.set(true);
    };
    tokio::join!(sending, copying);
    let after = every(100, (live + sent.len() as i64 * 100, live + HOUR / 4), rich);
    scene.send_unnoticed(after[..100].to_vec()).await;
    // Data that is moved after the copy is not in it either.
    scene.settle().await;

    scene = scene.restart_after(|data_dir| put_in_place(&copy, data_dir), embedded).await;

    let (sealed, open) = ((sealed, sealed + 6 * HOUR - 1), (hour - HOUR, hour - 1));
    scene.assert_as_modelled("sealed", sealed).await;
    scene.assert_raw("open", open).await;
    let live = (live, live + HOUR / 4);
    let kept = scene.history(live, "resolution=raw&max_points=20000").await.len();
    assert!(kept <= sent.len() && kept as i64 % BATCH == 0, "{kept} of {}", sent.len());
    sent[..kept].iter().for_each(|sample| scene.model.add(sample));
    scene.assert_raw("what came until the copy was taken", live).await;

    scene.send(sent).await;
    scene.settle().await;
    scene.assert_as_modelled("sealed, and settled again", sealed).await;
    scene.assert_raw("open, and settled again", open).await;
    scene.assert_raw("sent again", live).await;
}

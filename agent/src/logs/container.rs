//! Follows what a container writes.

use signalbox_protocol::agent::RequestError;
use tokio::sync::mpsc;

use super::Item;
use crate::docker::Docker;

/// Sends the last lines, then each that comes, until the container is removed or nobody takes them any more.
pub async fn follow(
    docker: Docker,
    container_id: String,
    tail: u32,
    items: mpsc::Sender<Item>,
) -> Result<(), RequestError> {
    // One line: what is not taken waits in the engine's log and not here.
    let (lines, mut waiting) = mpsc::channel(1);
    let handed_on = async {
        while let Some(line) = waiting.recv().await {
            if items.send(Item::Line(line)).await.is_err() {
                break;
            }
        }
        // Nobody takes lines any more, or there are none: then the other end tells why.
        drop(waiting);
        Ok(())
    };
    tokio::try_join!(docker.follow(&container_id, tail, lines), handed_on).map(|_| ())
}

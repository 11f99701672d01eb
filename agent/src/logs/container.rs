//! Follows a container's log.

use signalbox_protocol::agent::RequestError;
use tokio::sync::mpsc;

use super::Item;
use crate::docker::Docker;

/// Sends the last lines, then each new one, until the container is removed or nobody receives them any more.
pub async fn follow(
    docker: Docker,
    container_id: String,
    tail: u32,
    items: mpsc::Sender<Item>,
) -> Result<(), RequestError> {
    // One line: lines that are not received wait in the engine's log and not here.
    let (lines, mut waiting) = mpsc::channel(1);
    let handed_on = async {
        while let Some(line) = waiting.recv().await {
            if items.send(Item::Line(line)).await.is_err() {
                break;
            }
        }
        // Nobody receives lines any more, or there are none: then the other end says why.
        drop(waiting);
        Ok(())
    };
    tokio::try_join!(docker.follow(&container_id, tail, lines), handed_on).map(|_| ())
}

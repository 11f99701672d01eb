//! Work on a thread of its own, a few pieces ahead.

use tokio::sync::mpsc;

/// Pieces that may wait: enough that the thread works while the network does.
const AHEAD: usize = 2;

/// Produces pieces on a thread that may compute for long, until there are no more or nobody receives them.
pub fn produce<T: Send + 'static>(
    mut next: impl FnMut() -> anyhow::Result<Option<T>> + Send + 'static,
) -> mpsc::Receiver<anyhow::Result<T>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        while let Some(piece) = next().transpose() {
            let is_last = piece.is_err();
            if sender.blocking_send(piece).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

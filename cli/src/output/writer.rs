//! Writes in a thread of its own. A reader that pauses holds up neither sockets, whose pings want an answer, nor signals.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::error::Failure;

/// What waits for a reader that pauses: minutes of most output. A caller that writes more waits, too, and a socket that is not read for a
/// minute is closed.
const MAX_BYTES: u32 = 8 * 1024 * 1024;
/// Pieces that wait: if they are short, their overhead exceeds their text.
const MAX_PIECES: usize = 16 * 1024;

/// Writes pieces in their order.
pub struct Writer<T> {
    pieces: mpsc::Sender<(T, OwnedSemaphorePermit)>,
    /// The bytes that may still wait.
    room: Arc<Semaphore>,
    max_bytes: u32,
    /// Why nothing is written any more.
    failure: Arc<Mutex<Option<Failure>>>,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> Writer<T> {
    /// `write` writes a piece. After its first failure nothing more is written.
    pub fn start(write: impl FnMut(T) -> Result<(), Failure> + Send + 'static) -> Self {
        Self::within(MAX_BYTES, write)
    }

    fn within(max_bytes: u32, mut write: impl FnMut(T) -> Result<(), Failure> + Send + 'static) -> Self {
        let (sender, mut pieces) = mpsc::channel::<(T, OwnedSemaphorePermit)>(MAX_PIECES);
        let failure = Arc::<Mutex<Option<Failure>>>::default();
        let reason = Arc::clone(&failure);
        let thread = tokio::task::spawn_blocking(move || {
            while let Some((piece, _room)) = pieces.blocking_recv() {
                if let Err(failure) = write(piece) {
                    *reason.lock() = Some(failure);
                    return;
                }
            }
        });
        let room = Arc::new(Semaphore::new(usize::try_from(max_bytes).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { pieces: sender, room, max_bytes, failure, thread }
    }

    /// Writes a piece of so many bytes after all others. Returns before it is written, unless too much waits already.
    pub async fn write(&self, piece: T, bytes: usize) -> Result<(), Failure> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.max_bytes);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(bytes).await else { return Err(self.reason()) };
        self.pieces.send((piece, room)).await.map_err(|_| self.reason())
    }

    /// Writes a piece unless too many wait already. It is for people, and short.
    pub fn offer(&self, piece: T) {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(0) {
            let _ = self.pieces.try_send((piece, room));
        }
    }

    /// Why nothing is written any more, as soon as that is so.
    pub async fn failed(&self) -> Failure {
        self.pieces.closed().await;
        self.reason()
    }

    /// Waits until all pieces are written.
    pub async fn finish(self) -> Result<(), Failure> {
        let Self { pieces, failure, thread, .. } = self;
        drop(pieces);
        thread.await.map_err(|ended| Failure::failed(ended.to_string()))?;
        let failure = failure.lock().take();
        failure.map_or(Ok(()), Err)
    }

    fn reason(&self) -> Failure {
        self.failure.lock().take().unwrap_or_else(|| Failure::failed("the output cannot be written"))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_reader_that_pauses_holds_nothing_up_until_too_much_waits() {
        let (turns, turn) = std::sync::mpsc::channel::<()>();
        let written = Arc::<Mutex<Vec<&str>>>::default();
        let log = Arc::clone(&written);
        let write = move |piece| {
            turn.recv().unwrap();
            log.lock().push(piece);
            Ok(())
        };
        let writer = Writer::within(10, write);

        writer.write("first", 5).await.unwrap();
        writer.write("other", 5).await.unwrap();
        writer.offer("a note");
        {
            let mut third = pin!(writer.write("third", 100));
            assert!(third.as_mut().now_or_never().is_none(), "as many bytes wait as may");
            (0..4).for_each(|_| turns.send(()).unwrap());
            third.await.unwrap();
        }
        writer.finish().await.unwrap();

        assert_eq!(*written.lock(), ["first", "other", "a note", "third"]);
    }

    #[tokio::test]
    async fn the_first_failure_is_known_without_another_piece() {
        let writer = Writer::start(|()| Err(Failure::NoReader));

        writer.write((), 1).await.unwrap();

        assert!(matches!(writer.failed().await, Failure::NoReader));
        assert!(writer.write((), 1).await.is_err());
    }

    #[tokio::test]
    async fn a_failure_is_known_at_the_end() {
        let writer = Writer::start(|()| Err(Failure::NoReader));

        writer.write((), 1).await.unwrap();

        assert!(matches!(writer.finish().await, Err(Failure::NoReader)));
    }
}

//! What an answer is made from, for as long as its client takes it.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

/// A resource that is taken away from a client that is too slow. An answer cannot do that itself: while its client reads nothing, it
/// is not polled.
pub struct Revocable<T> {
    /// `None` once the client has taken too long.
    resource: Arc<Mutex<Option<T>>>,
    /// Notified of each piece.
    made: watch::Sender<()>,
}

impl<T: Send + 'static> Revocable<T> {
    /// A resource for at most `whole`, of which the client takes a piece every `pause` at least.
    pub fn new(resource: T, whole: Duration, pause: Duration) -> Self {
        let resource = Arc::new(Mutex::new(Some(resource)));
        let (made, pieces) = watch::channel(());
        tokio::spawn(revoke(Arc::downgrade(&resource), pieces, whole, pause));
        Self { resource, made }
    }

    /// Makes the next piece; an error if the resource was taken away.
    pub async fn piece<P>(&mut self, make: impl AsyncFnOnce(&mut T) -> P) -> io::Result<P> {
        let mut locked = self.resource.lock().await;
        let Some(resource) = locked.as_mut() else { return Err(io::ErrorKind::TimedOut.into()) };
        let piece = make(resource).await;
        self.made.send_replace(());
        Ok(piece)
    }
}

async fn revoke<T>(
    resource: Weak<Mutex<Option<T>>>,
    mut pieces: watch::Receiver<()>,
    whole: Duration,
    pause: Duration,
) {
    // A piece that is being made waits for something else than the client.
    let is_being_made = || resource.upgrade().is_some_and(|shared| shared.try_lock().is_err());
    let taking = async {
        loop {
            match timeout(pause, pieces.changed()).await {
                Ok(Ok(())) => {}
                Err(_) if is_being_made() => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
    };
    _ = timeout(whole, taking).await;
    // Nothing is left if the answer has ended.
    if let Some(shared) = resource.upgrade() {
        *shared.lock().await = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(60);
    const LONG: Duration = Duration::from_secs(3_600);

    /// A resource that shows whether it is still there.
    fn resource(whole: Duration, pause: Duration) -> (Revocable<Arc<()>>, Weak<()>) {
        let resource = Arc::new(());
        let there = Arc::downgrade(&resource);
        (Revocable::new(resource, whole, pause), there)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_for_too_long_loses_it() {
        let (mut revocable, there) = resource(LONG, SHORT);
        for _ in 0..3 {
            tokio::time::sleep(SHORT / 2).await;
            revocable.piece(async |_| ()).await.unwrap();
        }
        assert!(there.upgrade().is_some());

        tokio::time::sleep(SHORT * 2).await;

        assert!(there.upgrade().is_none());
        assert_eq!(revocable.piece(async |_| ()).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_too_long_for_everything_loses_it() {
        let (mut revocable, there) = resource(SHORT, LONG);
        revocable.piece(async |_| ()).await.unwrap();

        tokio::time::sleep(SHORT * 2).await;

        assert!(there.upgrade().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_to_make_a_piece_does_not_count() {
        let (mut revocable, there) = resource(Duration::MAX, SHORT);

        revocable.piece(async |_| tokio::time::sleep(SHORT * 5).await).await.unwrap();
        tokio::time::sleep(SHORT / 2).await;

        assert!(there.upgrade().is_some());
        drop(revocable);
        assert!(there.upgrade().is_none());
    }
}

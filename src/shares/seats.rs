//! Seats for clients that have sent nothing yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::gate::Full;
use super::seating::{SeatId, Seated, Seating};
use super::share::Share;

/// A bounded number of seats.
#[derive(Clone)]
pub struct Seats(Arc<Shared>);

struct Shared {
    pool: &'static str,
    began: Instant,
    state: Mutex<State>,
}

struct State {
    seating: Seating,
    evictions: HashMap<SeatId, oneshot::Sender<()>>,
}

/// A seat, until dropped.
pub struct Seat {
    seats: Seats,
    share: Share,
    id: SeatId,
}

/// Resolves to `Ok` when the seat goes to another client, and to an error when it was freed.
pub type Eviction = oneshot::Receiver<()>;

impl Seats {
    /// Seats whose metrics have the label `pool`.
    pub fn new(pool: &'static str, seats: usize) -> Self {
        let state = State { seating: Seating::new(seats), evictions: HashMap::new() };
        Self(Arc::new(Shared { pool, began: Instant::now(), state: Mutex::new(state) }))
    }

    /// Takes a seat, for which the oldest one may be taken away.
    pub fn take(&self, share: Share) -> Result<(Seat, Eviction), Full> {
        let mut state = self.state();
        // The time is read while the state is locked, so that newcomers keep their order.
        let Seated::Here { id, evicted } = state.seating.take(share, self.0.began.elapsed()) else {
            drop(state);
            metrics::counter!("signalbox_shares_refused_total", "pool" => self.0.pool).increment(1);
            return Err(Full);
        };
        let (sender, eviction) = oneshot::channel();
        state.evictions.insert(id, sender);
        let evicted = evicted.and_then(|evicted| state.evictions.remove(&evicted));
        drop(state);
        if let Some(evicted) = evicted {
            metrics::counter!("signalbox_shares_evicted_total", "pool" => self.0.pool).increment(1);
            // A client that has just sent something does not listen for its eviction any more.
            _ = evicted.send(());
        }
        Ok((Seat { seats: self.clone(), share, id }, eviction))
    }

    /// How many seats are taken.
    pub fn taken(&self) -> usize {
        self.state().seating.taken()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.seats.state();
        state.seating.give_back(self.share, self.id);
        state.evictions.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_seat_is_taken_away() {
        let seats = Seats::new("test", 2);
        let (_first, first_eviction) = seats.take(Share::Host(1)).unwrap();
        let (_second, mut second_eviction) = seats.take(Share::Host(1)).unwrap();

        let (_third, _) = seats.take(Share::Host(2)).unwrap();

        assert_eq!(first_eviction.await, Ok(()));
        assert!(second_eviction.try_recv().is_err());
        assert_eq!(seats.taken(), 2);
    }

    #[tokio::test]
    async fn a_freed_seat_belongs_to_no_client() {
        let seats = Seats::new("test", 1);
        let (seat, eviction) = seats.take(Share::Host(1)).unwrap();

        drop(seat);

        assert!(eviction.await.is_err());
        assert_eq!(seats.taken(), 0);
        assert!(seats.state().evictions.is_empty());
    }
}

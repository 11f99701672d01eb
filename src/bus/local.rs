//! The bus of one process. Tests use it to join several instances that run in the same process.

use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::{Bus, BusError, BusFuture, Delivery, MAX_WAITING, Subscription};

/// The default maximum of NATS.
const MAX_BYTES: usize = 1024 * 1024;

/// Joins all holders of a clone of it.
#[derive(Clone, Default)]
pub struct LocalBus {
    subjects: Arc<DashMap<String, Vec<Listener>>>,
    next_id: Arc<AtomicU64>,
    is_cut: Arc<AtomicBool>,
    cuts: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

struct Listener {
    id: u64,
    deliveries: mpsc::Sender<Delivery>,
}

impl LocalBus {
    /// Makes the bus carry nothing, or carry messages again.
    pub fn cut(&self, is_cut: bool) {
        self.cuts.fetch_add(u64::from(is_cut), Ordering::SeqCst);
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    fn listeners(&self, subject: &str) -> Vec<mpsc::Sender<Delivery>> {
        let listeners = self.subjects.get(subject);
        listeners.map(|all| all.iter().map(|one| one.deliveries.clone()).collect()).unwrap_or_default()
    }

    fn check(&self, payload: &Bytes) -> Result<(), BusError> {
        match (self.is_up(), payload.len()) {
            (false, _) => Err(BusError::Away),
            (true, ..=MAX_BYTES) => Ok(()),
            (true, _) => Err(BusError::TooLarge),
        }
    }

    fn count_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("signalbox_bus_messages_lost_total").increment(1);
    }

    fn leave(&self, subject: &str, id: u64) {
        if let Some(mut listeners) = self.subjects.get_mut(subject) {
            listeners.retain(|listener| listener.id != id);
        }
        self.subjects.remove_if(subject, |_, listeners| listeners.is_empty());
    }
}

impl Bus for LocalBus {
    fn publish(&self, subject: String, payload: Bytes) -> BusFuture<'_, ()> {
        Box::pin(async move {
            self.check(&payload)?;
            for listener in self.listeners(&subject) {
                if let Err(TrySendError::Full(_)) = listener.try_send(Delivery::new(payload.clone(), None)) {
                    self.count_lost();
                }
            }
            Ok(())
        })
    }

    fn request(&self, subject: String, payload: Bytes, deadline: Duration) -> BusFuture<'_, Bytes> {
        Box::pin(async move {
            self.check(&payload)?;
            let listener = self.listeners(&subject).into_iter().next().ok_or(BusError::NoResponder)?;
            let (answer, answered) = oneshot::channel();
            let answer = Box::new(move |payload| _ = answer.send(payload));
            match listener.try_send(Delivery::new(payload, Some(answer))) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => self.count_lost(),
                Err(TrySendError::Closed(_)) => return Err(BusError::NoResponder),
            }
            let answered = async {
                match answered.await {
                    Ok(answer) => answer,
                    // The message was lost, or dropped without an answer: as on any other bus, nobody reports that.
                    Err(_) => future::pending().await,
                }
            };
            tokio::time::timeout(deadline, answered).await.map_err(|_| BusError::Timeout)
        })
    }

    fn subscribe(&self, subject: String) -> BusFuture<'_, Subscription> {
        Box::pin(async move {
            let (sender, deliveries) = mpsc::channel(MAX_WAITING);
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            self.subjects.entry(subject.clone()).or_default().push(Listener { id, deliveries: sender });
            let (ends, ended) = oneshot::channel::<()>();
            let bus = self.clone();
            tokio::spawn(async move {
                // Resolves when the subscription is dropped.
                _ = ended.await;
                bus.leave(&subject, id);
            });
            Ok(Subscription { deliveries, _ends: ends })
        })
    }

    fn is_up(&self) -> bool {
        !self.is_cut.load(Ordering::SeqCst)
    }

    fn connects(&self) -> u64 {
        1 + self.cuts.load(Ordering::SeqCst)
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn most_bytes(&self) -> usize {
        MAX_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn an_answer_reaches_the_caller() {
        let bus = LocalBus::default();
        let mut listening = bus.subscribe("a".to_owned()).await.unwrap();
        let answering = tokio::spawn(async move {
            let delivery = listening.next().await.unwrap();
            let payload = [delivery.payload.as_ref(), b"!"].concat();
            delivery.answer(payload.into());
            listening
        });

        let answer = bus.request("a".to_owned(), "hello".into(), SOON).await;

        assert_eq!(answer, Ok(Bytes::from("hello!")));
        drop(answering.await.unwrap());
    }

    #[tokio::test]
    async fn a_subject_without_listeners_has_no_responder() {
        let bus = LocalBus::default();

        assert_eq!(bus.request("a".to_owned(), Bytes::new(), SOON).await, Err(BusError::NoResponder));
        assert_eq!(bus.publish("a".to_owned(), Bytes::new()).await, Ok(()));
        bus.cut(true);
        assert_eq!(bus.request("a".to_owned(), Bytes::new(), SOON).await, Err(BusError::Away));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_dropped_or_lost_times_out() {
        let bus = LocalBus::default();
        let mut listening = bus.subscribe("a".to_owned()).await.unwrap();
        let ask = || bus.request("a".to_owned(), Bytes::new(), SOON);

        let (dropped, _) = tokio::join!(ask(), async { drop(listening.next().await) });
        for _ in 0..MAX_WAITING {
            bus.publish("a".to_owned(), Bytes::new()).await.unwrap();
        }

        assert_eq!([dropped, ask().await], [Err(BusError::Timeout), Err(BusError::Timeout)]);
    }

    #[tokio::test]
    async fn a_dropped_subscription_leaves_its_subject() {
        let bus = LocalBus::default();
        let listening = bus.subscribe("a".to_owned()).await.unwrap();

        drop(listening);

        // A separate task removes the listener.
        while bus.subjects.contains_key("a") {
            tokio::task::yield_now().await;
        }
        assert_eq!(bus.request("a".to_owned(), Bytes::new(), SOON).await, Err(BusError::NoResponder));
    }
}

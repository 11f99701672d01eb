//! Live samples, for people who watch the server now: more of them than the interval yields, sent at once or not at all.
//!
//! The service asks for them and repeats that every few seconds while somebody watches. They are shown and forgotten: what is
//! stored, and what alerts see, is the same whether somebody watches or not.

use std::time::Duration;

use parking_lot::Mutex;
use signalbox_protocol::Sample;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// The longest time that one request can cover: a service that has gone wrong does not keep its agents busy.
const MAX_ASKED: Duration = Duration::from_secs(60);
/// One live sample takes at most this part of the time until the next: where reading takes long, there are fewer.
const REST: u32 = 50;

/// What the service asks for, and the newest sample for it. The sampler and the connection share it.
#[derive(Debug)]
pub struct Live {
    /// The shortest interval that the configuration permits; none where it permits no live samples.
    shortest: Option<Duration>,
    request: watch::Sender<Option<Request>>,
    newest: Mutex<Option<Sample>>,
    offered: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    interval: Duration,
    until: Instant,
}

/// How long the next live sample has to wait.
#[derive(Debug, Clone, Copy)]
pub struct Rest {
    /// When the last sample was taken, live or not.
    since: Instant,
    /// Not before this time, whatever was asked.
    until: Instant,
}

impl Rest {
    /// After a sample that is kept.
    pub fn from_now() -> Self {
        let now = Instant::now();
        Self { since: now, until: now }
    }

    /// After a live sample that is complete now.
    pub fn after(began: Instant) -> Self {
        Self { since: began, until: began + began.elapsed() * REST }
    }
}

impl Live {
    pub fn new(shortest: Option<Duration>) -> Self {
        Self { shortest, request: watch::channel(None).0, newest: Mutex::new(None), offered: Notify::new() }
    }

    /// The shortest interval, for the service.
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// Takes a request of the service. One that makes no sense is ignored.
    pub fn ask(&self, interval_seconds: f64, for_seconds: f64) {
        let Some(shortest) = self.shortest else { return };
        let (interval, length) =
            (Duration::try_from_secs_f64(interval_seconds), Duration::try_from_secs_f64(for_seconds));
        if let (Ok(interval), Ok(length)) = (interval, length) {
            let until = Instant::now() + length.min(MAX_ASKED);
            self.request.send_replace(Some(Request { interval: interval.max(shortest), until }));
        }
    }

    /// Forgets the request with the connection that it came on.
    pub fn end(&self) {
        self.request.send_replace(None);
        *self.newest.lock() = None;
    }

    /// Resolves when a live sample is wanted; never while nobody asks.
    pub async fn due(&self, rest: Rest) {
        let mut requests = self.request.subscribe();
        loop {
            let request = *requests.borrow_and_update();
            let due = request.and_then(|request| {
                let at = rest.since.checked_add(request.interval)?.max(rest.until);
                (at < request.until).then_some(at)
            });
            let Some(at) = due else {
                _ = requests.changed().await;
                continue;
            };
            tokio::select! {
                () = sleep_until(at) => return,
                _ = requests.changed() => {}
            }
        }
    }

    /// Passes a sample to the connection. One that was not taken yet is replaced. It is left out if the service would refuse
    /// it, because that would close the connection.
    pub fn offer(&self, mut sample: Sample) {
        sample.round();
        if let Err(error) = sample.validate() {
            tracing::debug!(%error, "left out a live sample that is not valid");
            return;
        }
        *self.newest.lock() = Some(sample);
        self.offered.notify_one();
    }

    /// The next sample to send.
    pub async fn taken(&self) -> Sample {
        loop {
            self.offered.notified().await;
            let newest = self.newest.lock().take();
            if let Some(sample) = newest {
                return sample;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The seconds after which live samples were due until none was for a minute, each of which took `reading`.
    async fn due_after(live: &Live, reading: Duration) -> Vec<u64> {
        let (began, mut rest, mut due) = (Instant::now(), Rest::from_now(), Vec::new());
        while tokio::time::timeout(seconds(60), live.due(rest)).await.is_ok() {
            let started = Instant::now();
            due.push(began.elapsed().as_secs());
            tokio::time::sleep(reading).await;
            rest = Rest::after(started);
        }
        due
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_expires() {
        let live = Live::new(Some(seconds(1)));

        live.ask(1.0, 4.5);

        assert_eq!(due_after(&live, Duration::ZERO).await, [1, 2, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_request_leaves_no_gap() {
        let live = Live::new(Some(seconds(1)));
        live.ask(1.0, 3.5);

        let (due, ()) = tokio::join!(due_after(&live, Duration::ZERO), async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            live.ask(1.0, 3.0);
        });

        assert_eq!(due, [1, 2, 3, 4, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_configuration_decides_how_often_at_most() {
        let (slow, off) = (Live::new(Some(seconds(2))), Live::new(None));

        for live in [&slow, &off] {
            live.ask(0.0, 5.0);
        }

        assert_eq!(due_after(&slow, Duration::ZERO).await, [2, 4]);
        assert!(due_after(&off, Duration::ZERO).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_done_less_often() {
        let live = Live::new(Some(seconds(1)));
        live.ask(1.0, 16.0);

        assert_eq!(due_after(&live, Duration::from_millis(100)).await, [1, 6, 11]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_due_after_the_end_of_the_connection_or_a_request_without_sense() {
        let live = Live::new(Some(seconds(1)));
        live.ask(1.0, 10.0);
        live.end();
        for (interval, length) in [(f64::NAN, 10.0), (1.0, -1.0), (1.0, f64::INFINITY), (1e300, 10.0), (1.0, 0.0)] {
            live.ask(interval, length);
        }

        assert!(due_after(&live, Duration::ZERO).await.is_empty());
    }

    #[tokio::test]
    async fn the_connection_takes_the_newest_sample_and_no_invalid_one() {
        let live = Live::new(Some(seconds(1)));
        let sample = |cpu_percent| Sample { cpu_percent, ..Sample::default() };

        for cpu_percent in [1.0, 2.0, f64::NAN] {
            live.offer(sample(cpu_percent));
        }

        assert_eq!(live.taken().await, sample(2.0));
    }
}

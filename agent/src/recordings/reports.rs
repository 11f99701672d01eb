//! Recordings that the service has not noted yet, and what a connection still has to say of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use signalbox_protocol::agent::{AgentMessage, TerminalRecorded};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

/// Reports that a connection may have sent and the service not noted.
const MAX_IN_FLIGHT: usize = 4;

/// After this long without an answer a report is repeated: the service's database may have been away.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

/// The most reports that wait. Of more, the agent tells after its next start.
const MAX_WAITING: usize = 1_000;

/// What waits to be reported; cheap to clone.
#[derive(Clone, Default)]
pub struct Reports(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Ids rise with the time of the terminal.
    waiting: Mutex<BTreeMap<Uuid, TerminalRecorded>>,
    news: Notify,
}

/// The reports of one connection.
pub struct ReportsUplink {
    reports: Reports,
    /// When what was sent.
    sent: HashMap<Uuid, Instant>,
}

impl Reports {
    /// Reports a recording until the service has noted it.
    pub fn add(&self, recorded: TerminalRecorded) {
        let mut waiting = self.0.waiting.lock();
        if waiting.len() < MAX_WAITING {
            waiting.insert(recorded.stream_id, recorded);
        }
        drop(waiting);
        self.0.news.notify_one();
    }

    /// Takes in that the service has noted one. Returns whether it waited.
    pub fn remove(&self, id: Uuid) -> bool {
        let was_waiting = self.0.waiting.lock().remove(&id).is_some();
        self.0.news.notify_one();
        was_waiting
    }
}

/// What to do next.
enum Next {
    Report(Box<TerminalRecorded>),
    Wait(Option<Instant>),
}

impl ReportsUplink {
    /// For a new connection: everything that waits is reported.
    pub fn new(reports: Reports) -> Self {
        Self { reports, sent: HashMap::new() }
    }

    /// The next report. Waits while there is none; a call that is dropped has taken nothing.
    pub async fn next(&mut self) -> AgentMessage {
        loop {
            match self.take(Instant::now()) {
                Next::Report(recorded) => return AgentMessage::TerminalRecorded(*recorded),
                Next::Wait(None) => self.reports.0.news.notified().await,
                Next::Wait(Some(until)) => tokio::select! {
                    () = self.reports.0.news.notified() => {}
                    () = sleep_until(until) => {}
                },
            }
        }
    }

    fn take(&mut self, now: Instant) -> Next {
        let waiting = self.reports.0.waiting.lock();
        self.sent.retain(|id, _| waiting.contains_key(id));
        let late = self.sent.iter().min_by_key(|(_, at)| **at).map(|(id, at)| (*id, *at + REPEAT_AFTER));
        let found = match late {
            Some((id, due)) if due <= now => waiting.get(&id),
            _ if self.sent.len() < MAX_IN_FLIGHT => {
                waiting.iter().find(|(id, _)| !self.sent.contains_key(id)).map(|(_, recorded)| recorded)
            }
            _ => None,
        };
        match found {
            Some(recorded) => {
                self.sent.insert(recorded.stream_id, now);
                Next::Report(Box::new(recorded.clone()))
            }
            None => Next::Wait(late.map(|(_, due)| due)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use signalbox_protocol::Timestamp;

    use super::*;

    fn recorded(number: u128) -> TerminalRecorded {
        TerminalRecorded {
            stream_id: Uuid::from_u128(number),
            by: "ada".into(),
            started_at: Timestamp::from_millis(0),
            seconds: 1.0,
            bytes: 1,
            sha256: "0".repeat(64),
            columns: 80,
            rows: 24,
            interrupted: false,
        }
    }

    fn sent(uplink: &mut ReportsUplink) -> Option<u128> {
        match uplink.next().now_or_never()? {
            AgentMessage::TerminalRecorded(recorded) => Some(recorded.stream_id.as_u128()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_few_at_a_time_are_reported_until_the_service_has_noted_them() {
        let reports = Reports::default();
        (1..=6).for_each(|number| reports.add(recorded(number)));
        let mut uplink = ReportsUplink::new(reports.clone());

        let first: Vec<u128> = std::iter::from_fn(|| sent(&mut uplink)).collect();
        assert!(reports.remove(Uuid::from_u128(2)) && !reports.remove(Uuid::from_u128(2)));
        let next: Vec<u128> = std::iter::from_fn(|| sent(&mut uplink)).collect();

        assert_eq!((first, next), (vec![1, 2, 3, 4], vec![5]));
        let mut of_next_connection = ReportsUplink::new(reports);
        let again: Vec<u128> = std::iter::from_fn(|| sent(&mut of_next_connection)).collect();
        assert_eq!(again, [1, 3, 4, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_service_does_not_note_is_repeated() {
        let reports = Reports::default();
        reports.add(recorded(1));
        let mut uplink = ReportsUplink::new(reports.clone());
        assert_eq!((sent(&mut uplink), sent(&mut uplink)), (Some(1), None));

        let began = Instant::now();
        let again = uplink.next().await;

        assert_eq!(again, AgentMessage::TerminalRecorded(recorded(1)));
        assert_eq!(began.elapsed(), REPEAT_AFTER);
    }

    #[tokio::test]
    async fn a_new_recording_is_reported_on_the_connection_that_waits() {
        let reports = Reports::default();
        let mut uplink = ReportsUplink::new(reports.clone());

        let (message, ()) = tokio::join!(uplink.next(), async { reports.add(recorded(7)) });

        assert_eq!(message, AgentMessage::TerminalRecorded(recorded(7)));
    }

    #[tokio::test]
    async fn the_reports_that_wait_are_bounded() {
        let reports = Reports::default();

        (0..2_000).for_each(|number| reports.add(recorded(number)));

        assert_eq!(reports.0.waiting.lock().len(), MAX_WAITING);
    }
}

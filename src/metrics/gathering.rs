//! The contents of the recorder's next transaction, and the callers that wait for it.

use actix::{Message, Recipient};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::tail::Fresh;
use crate::store::history::{LeftOut, Why};
use crate::store::{Commit, Committed};

/// Enough samples to make the cost of a transaction small compared with that of its rows.
const COMMIT_SAMPLES: usize = 512;

/// A sample that has to be made durable.
#[derive(Debug, Clone)]
pub struct NewSample {
    pub server_id: Uuid,
    pub fresh: Fresh,
    /// The sample as encoded by `history::codec`.
    pub encoded: Vec<u8>,
}

/// Notifies that the samples of a message are durable, or lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct Recorded {
    pub seq: u64,
    /// Set if they are not durable, because the session does not hold its server any more.
    pub lost: Option<Why>,
    /// The memory that the message took while it waited.
    pub bytes: usize,
}

/// Whether a session holds its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionCheck {
    Yes {
        /// Its machine has rebooted since the previous session.
        has_rebooted: bool,
    },
    /// Another session has taken the server in the meantime.
    No,
}

/// Tells the recorder what the gathering contains. Each is sent once for a whole gathering, not for each batch, because
/// waking the recorder's thread two thousand times a second cost more than writing the samples. The more urgent is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Message)]
#[rtype(result = "()")]
pub(super) enum Gathered {
    /// It is not empty: commit after the interval.
    Some,
    /// It has enough samples: commit unless the last commit began a moment ago.
    Enough,
    /// A caller waits, such as a handshake: commit now.
    Awaited,
}

/// The receiver that waits for a batch, whose samples are all of one server.
pub(super) struct Waiting {
    pub server_id: Option<Uuid>,
    pub session_id: Uuid,
    pub recorded: Recorded,
    pub done: Recipient<Recorded>,
}

/// The contents of the next transaction, and the callers that wait for it.
#[derive(Default)]
pub(super) struct Gathering {
    /// Samples, each with the session that sent it.
    pub samples: Vec<(Uuid, NewSample)>,
    pub commit: Commit,
    pub batches: Vec<Waiting>,
    /// Sessions that are taking their server.
    pub handshakes: Vec<(Uuid, oneshot::Sender<SessionCheck>)>,
    pub waiting: Vec<oneshot::Sender<()>>,
    /// The last message that the recorder got about this gathering.
    pub told: Option<Gathered>,
}

impl Gathering {
    /// Returns how urgent the gathering is; `None` if it is empty.
    pub fn state(&self) -> Option<Gathered> {
        if !self.waiting.is_empty() || !self.handshakes.is_empty() {
            Some(Gathered::Awaited)
        } else if self.samples.len() >= COMMIT_SAMPLES {
            Some(Gathered::Enough)
        } else {
            (!self.is_empty()).then_some(Gathered::Some)
        }
    }

    pub fn is_empty(&self) -> bool {
        let nobody_waits = self.batches.is_empty() && self.waiting.is_empty() && self.handshakes.is_empty();
        self.samples.is_empty() && self.commit.is_empty() && nobody_waits
    }

    /// Returns the message that the recorder has to get, if it has not got it yet.
    pub fn news(&mut self) -> Option<Gathered> {
        let state = self.state();
        if state <= self.told {
            return None;
        }
        self.told = state;
        state
    }

    /// Answers everyone who waits. A batch whose server was deleted gets no answer, because its session is being closed.
    pub fn announce(self, committed: &Committed) {
        for Waiting { server_id, session_id, recorded, done } in self.batches {
            let is_it = |left: &&LeftOut| Some(left.server_id) == server_id && left.session_id == session_id;
            let recorded = match committed.left_out.iter().find(is_it).map(|left| left.why) {
                Some(Why::Gone) => continue,
                lost => Recorded { lost, ..recorded },
            };
            // If the session has gone, its agent sends the batch again, and the samples are already stored.
            _ = done.try_send(recorded);
        }
        for (session_id, done) in self.handshakes {
            let is_refused = committed.refused.contains(&session_id);
            let held = SessionCheck::Yes { has_rebooted: committed.rebooted.contains(&session_id) };
            _ = done.send(if is_refused { SessionCheck::No } else { held });
        }
        for done in self.waiting {
            _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signalbox_history::frame::Row;
    use signalbox_history::shape::Shape;
    use signalbox_protocol::{Sample, Timestamp};

    use super::*;

    fn new_sample() -> NewSample {
        let sample = Sample::default();
        let row = Row::of(&sample, Arc::new(Shape::of(&sample)));
        NewSample { server_id: Uuid::nil(), fresh: Fresh { row, processes: None }, encoded: Vec::new() }
    }

    #[test]
    fn the_recorder_gets_each_reason_to_commit_sooner_once() {
        let mut gathering = Gathering::default();
        assert_eq!(gathering.news(), None);

        gathering.commit.seen.push((Uuid::nil(), Timestamp::default()));
        assert_eq!((gathering.news(), gathering.news()), (Some(Gathered::Some), None));
        gathering.samples = vec![(Uuid::nil(), new_sample()); COMMIT_SAMPLES];
        assert_eq!((gathering.news(), gathering.news()), (Some(Gathered::Enough), None));
        gathering.waiting.push(oneshot::channel().0);
        assert_eq!((gathering.news(), gathering.news()), (Some(Gathered::Awaited), None));
    }

    #[test]
    fn a_waiting_caller_is_more_urgent_than_later_samples() {
        let mut gathering = Gathering::default();
        gathering.waiting.push(oneshot::channel().0);
        assert_eq!(gathering.news(), Some(Gathered::Awaited));

        gathering.samples = vec![(Uuid::nil(), new_sample()); COMMIT_SAMPLES];

        assert_eq!(gathering.news(), None);
    }
}

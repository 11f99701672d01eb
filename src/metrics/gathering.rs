//! What the recorder's next transaction will write, and who waits for it.

use actix::{Message, Recipient};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::tail::Fresh;
use crate::store::history::{LeftOut, Why};
use crate::store::{Commit, Committed};

/// Enough to make the cost of a transaction small against the cost of its rows.
const COMMIT_SAMPLES: usize = 512;

/// A sample that is to become durable.
#[derive(Debug, Clone)]
pub struct NewSample {
    pub server_id: Uuid,
    pub fresh: Fresh,
    /// `history::codec`'s.
    pub encoded: Vec<u8>,
}

/// The samples of this message are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct Recorded {
    pub seq: u64,
    /// They are not: the session does not hold its server any more.
    pub lost: Option<Why>,
    /// What the message weighed while it waited.
    pub bytes: usize,
}

/// Whether a session holds its server now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    Yes {
        /// Its machine was started again since the session before.
        has_rebooted: bool,
    },
    /// Another one took hold of it meanwhile.
    No,
}

/// What lies in the gathering. Each is sent once for a whole gathering, not for each batch: waking the recorder's thread
/// two thousand times a second cost more than writing the samples. What is more urgent is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Message)]
#[rtype(result = "()")]
pub(super) enum Gathered {
    /// The first of a gathering: commit when the interval has passed.
    Some,
    /// Enough samples: commit unless the last commit began a moment ago.
    Enough,
    /// Somebody waits, such as a handshake: commit now.
    Awaited,
}

/// Who waits for a batch: its samples are all of one server.
pub(super) struct Waiting {
    pub server_id: Option<Uuid>,
    pub session_id: Uuid,
    pub recorded: Recorded,
    pub done: Recipient<Recorded>,
}

/// What the next transaction will write, and who waits for it.
#[derive(Default)]
pub(super) struct Gathering {
    /// Each with the session that it came by.
    pub samples: Vec<(Uuid, NewSample)>,
    pub commit: Commit,
    pub batches: Vec<Waiting>,
    /// Sessions that want to take hold of their server.
    pub handshakes: Vec<(Uuid, oneshot::Sender<Held>)>,
    pub waiting: Vec<oneshot::Sender<()>>,
    /// The last that the recorder was told of this gathering.
    pub told: Option<Gathered>,
}

impl Gathering {
    /// What lies here; none where nothing does.
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

    /// What the recorder has to be told, if it has not been yet.
    pub fn news(&mut self) -> Option<Gathered> {
        let state = self.state();
        if state <= self.told {
            return None;
        }
        self.told = state;
        state
    }

    /// Tells everybody who waits what came of it. Those whose server is gone are told by others.
    pub fn announce(self, committed: &Committed) {
        for Waiting { server_id, session_id, recorded, done } in self.batches {
            let is_it = |left: &&LeftOut| Some(left.server_id) == server_id && left.session_id == session_id;
            let recorded = match committed.left_out.iter().find(is_it).map(|left| left.why) {
                Some(Why::Gone) => continue,
                lost => Recorded { lost, ..recorded },
            };
            // An agent that has gone will send the batch again and find it stored.
            _ = done.try_send(recorded);
        }
        for (session_id, done) in self.handshakes {
            let is_refused = committed.refused.contains(&session_id);
            let held = Held::Yes { has_rebooted: committed.rebooted.contains(&session_id) };
            _ = done.send(if is_refused { Held::No } else { held });
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
    fn the_recorder_is_told_once_of_each_reason_to_commit_sooner() {
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
    fn whoever_waits_is_more_urgent_than_samples_that_come_after() {
        let mut gathering = Gathering::default();
        gathering.waiting.push(oneshot::channel().0);
        assert_eq!(gathering.news(), Some(Gathered::Awaited));

        gathering.samples = vec![(Uuid::nil(), new_sample()); COMMIT_SAMPLES];

        assert_eq!(gathering.news(), None);
    }
}

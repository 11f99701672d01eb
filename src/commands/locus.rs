//! Which instance owns a command, and whether it was sent.
//!
//! Pure. [`Standing`] is the state that a [`Job`](super::job::Job) keeps in its lock. Every transition is a method that
//! returns whether it was accepted, so that two tasks cannot both make the same one.

use signalbox_protocol::Timestamp;

use super::job::End;

/// The instance that sends a command and stores its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locus {
    /// This instance, which has not sent it yet.
    Queued,
    /// This instance, which has sent it to an agent that is connected here, or was.
    Here,
    /// Another instance, to which the agent is connected. This instance has a replica of the job.
    Remote(Progress),
}

/// How far another instance is with a command, as far as this one knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Waiting,
    Sent,
}

/// The state of a command.
#[derive(Debug)]
pub(super) struct Standing {
    locus: Locus,
    /// Somebody has asked to end it.
    is_cancel_requested: bool,
    /// When it was started, if its row was read before that.
    began: Option<Timestamp>,
    end: Option<End>,
}

impl Standing {
    pub fn new(locus: Locus) -> Self {
        Self { locus, is_cancel_requested: false, began: None, end: None }
    }

    pub fn locus(&self) -> Locus {
        self.locus
    }

    pub fn is_cancel_requested(&self) -> bool {
        self.is_cancel_requested
    }

    pub fn began(&self) -> Option<Timestamp> {
        self.began
    }

    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// It was started. Refused if it was started before.
    pub fn begin(&mut self, at: Timestamp) -> bool {
        let is_first = self.began.is_none();
        self.began.get_or_insert(at);
        is_first
    }

    /// It was sent to its agent. Refused if it was sent before. It may have ended already, if its agent was quicker.
    pub fn mark_sent(&mut self) -> bool {
        let locus = match self.locus {
            Locus::Queued => Locus::Here,
            Locus::Remote(Progress::Waiting) => Locus::Remote(Progress::Sent),
            Locus::Here | Locus::Remote(Progress::Sent) => return false,
        };
        self.locus = locus;
        true
    }

    /// Its agent is connected to this instance. Refused if this was known. Also refused if it has ended, because then its
    /// owner reported the end, and this instance cannot know whether that is stored.
    pub fn set_local(&mut self) -> bool {
        let Locus::Remote(progress) = self.locus else { return false };
        if self.end.is_some() {
            return false;
        }
        self.locus = match progress {
            Progress::Waiting => Locus::Queued,
            Progress::Sent => Locus::Here,
        };
        true
    }

    /// Its agent is not connected to this instance. Refused if this was known. Also refused if it has ended, because the
    /// task that ended it here stores the end.
    pub fn set_remote(&mut self) -> bool {
        let progress = match self.locus {
            Locus::Queued => Progress::Waiting,
            Locus::Here => Progress::Sent,
            Locus::Remote(_) => return false,
        };
        if self.end.is_some() {
            return false;
        }
        self.locus = Locus::Remote(progress);
        true
    }

    /// The agent that it was sent to is no longer connected to this instance. Refused for a command that is not sent yet,
    /// because sending it finds the agent.
    pub fn follow_agent(&mut self) -> bool {
        self.locus == Locus::Here && self.set_remote()
    }

    /// This instance is asked to send it. Refused if this instance has sent it, or if it has ended.
    pub fn accept(&mut self) -> bool {
        let may_send = self.locus != Locus::Here && self.end.is_none();
        if may_send {
            self.set_local();
        }
        may_send
    }

    /// Somebody asks to end it, whether its agent can be reached now or not. Refused if somebody asked before.
    pub fn request_cancel(&mut self) -> bool {
        !std::mem::replace(&mut self.is_cancel_requested, true)
    }

    /// It has ended. Refused if it had ended before.
    pub fn finish(&mut self, end: End) -> bool {
        let is_first = self.end.is_none();
        self.end.get_or_insert(end);
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::JobStatus;

    const WAITING: Locus = Locus::Remote(Progress::Waiting);
    const SENT: Locus = Locus::Remote(Progress::Sent);
    const ALL: [Locus; 4] = [Locus::Queued, Locus::Here, WAITING, SENT];

    fn end(status: JobStatus) -> End {
        End::without_result(status, None, Timestamp::from_millis(0))
    }

    fn ended(locus: Locus) -> Standing {
        let mut standing = Standing::new(locus);
        assert!(standing.finish(end(JobStatus::Succeeded)));
        standing
    }

    /// Asserts where a transition leads from each locus, for a running job and for one that has ended; `None` if refused.
    #[track_caller]
    fn expect(
        transition: fn(&mut Standing) -> bool,
        running: [Option<Locus>; ALL.len()],
        has_ended: [Option<Locus>; ALL.len()],
    ) {
        for (begin, expected) in [(Standing::new as fn(Locus) -> Standing, running), (ended, has_ended)] {
            for (from, to) in ALL.into_iter().zip(expected) {
                let mut standing = begin(from);
                let happened = transition(&mut standing);
                assert_eq!((happened, standing.locus()), (to.is_some(), to.unwrap_or(from)), "from {from:?}");
            }
        }
    }

    #[test]
    fn a_command_is_sent_once_even_if_its_end_is_known_before() {
        let once = [Some(Locus::Here), None, Some(SENT), None];
        expect(Standing::mark_sent, once, once);
    }

    #[test]
    fn a_job_whose_agent_connects_is_local_unless_its_owner_ended_it() {
        expect(Standing::set_local, [None, None, Some(Locus::Queued), Some(Locus::Here)], [None; 4]);
    }

    #[test]
    fn a_job_whose_agent_is_elsewhere_is_remote_unless_it_ended_here() {
        expect(Standing::set_remote, [Some(WAITING), Some(SENT), None, None], [None; 4]);
    }

    #[test]
    fn a_job_that_is_not_sent_yet_does_not_follow_its_agent() {
        expect(Standing::follow_agent, [None, Some(SENT), None, None], [None; 4]);
    }

    #[test]
    fn a_job_of_another_instance_is_accepted_unless_it_was_sent_from_here_or_has_ended() {
        let accepted = [Some(Locus::Queued), None, Some(Locus::Queued), Some(Locus::Here)];
        expect(Standing::accept, accepted, [None; 4]);
    }

    #[test]
    fn a_job_starts_is_cancelled_and_ends_once_in_every_locus() {
        for locus in ALL {
            let mut standing = Standing::new(locus);
            let (first, second) = (Timestamp::from_millis(1), Timestamp::from_millis(2));

            assert!(!standing.is_cancel_requested());
            assert_eq!((standing.request_cancel(), standing.request_cancel()), (true, false));
            assert_eq!((standing.begin(first), standing.begin(second)), (true, false));
            let (lost, late) = (end(JobStatus::Lost), end(JobStatus::Succeeded));
            assert_eq!((standing.finish(lost.clone()), standing.finish(late)), (true, false));

            assert!(standing.is_cancel_requested());
            assert_eq!((standing.began(), standing.end(), standing.locus()), (Some(first), Some(&lost), locus));
        }
    }
}

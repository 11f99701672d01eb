//! Where a command is looked after, and how far it came.
//!
//! Pure. [`Standing`] is what a [`Job`](super::job::Job) keeps behind its lock: every change of it is a method here that says
//! whether it happened, so that what two tasks do at the same time is one after the other.

use signalbox_protocol::Timestamp;

use super::job::End;

/// Who sends a command, and who stores how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locus {
    /// This instance, which has not sent it.
    Queued,
    /// This instance, which has sent it to an agent that is connected here, or was.
    Here,
    /// Another instance, whose the agent is: here is a replica of the job, which is told what happens.
    Remote(Progress),
}

/// How far a command came elsewhere, as far as is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Waiting,
    Sent,
}

/// How a command stands.
#[derive(Debug)]
pub(super) struct Standing {
    locus: Locus,
    /// Somebody wants it to end.
    is_cancel_requested: bool,
    /// When its turn came, where the row was read before.
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

    /// Its turn has come. Refused when it has come before.
    pub fn begin(&mut self, at: Timestamp) -> bool {
        let is_first = self.began.is_none();
        self.began.get_or_insert(at);
        is_first
    }

    /// It has left for its agent. Refused when it has before. One may have ended already: its agent was quicker.
    pub fn mark_sent(&mut self) -> bool {
        let locus = match self.locus {
            Locus::Queued => Locus::Here,
            Locus::Remote(Progress::Waiting) => Locus::Remote(Progress::Sent),
            Locus::Here | Locus::Remote(Progress::Sent) => return false,
        };
        self.locus = locus;
        true
    }

    /// Its agent is here. Refused when this was known; and when it has ended, as its home said: this instance cannot know
    /// whether that is stored.
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

    /// Its agent is not here. Refused when this was known; and when it has ended: what ended it here stores that.
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

    /// The agent that it was sent to is not here any more. Refused for one that is about to be sent, which finds the agent
    /// by itself.
    pub fn follow_agent(&mut self) -> bool {
        self.locus == Locus::Here && self.set_remote()
    }

    /// This instance is asked to send it. Refused when it has sent it, or it has ended.
    pub fn accept(&mut self) -> bool {
        let may_send = self.locus != Locus::Here && self.end.is_none();
        if may_send {
            self.set_local();
        }
        may_send
    }

    /// Somebody wants it to end, whether or not its agent can be told now. Refused when somebody did before.
    pub fn request_cancel(&mut self) -> bool {
        !std::mem::replace(&mut self.is_cancel_requested, true)
    }

    /// It has ended. Refused when it had before.
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
        End::without_result(status, None)
    }

    fn ended(locus: Locus) -> Standing {
        let mut standing = Standing::new(locus);
        assert!(standing.finish(end(JobStatus::Succeeded)));
        standing
    }

    /// Where a transition leads from each locus, of a job that runs and of one that has ended; none where it is refused.
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
    fn a_job_whose_agent_came_is_local_unless_its_home_ended_it() {
        expect(Standing::set_local, [None, None, Some(Locus::Queued), Some(Locus::Here)], [None; 4]);
    }

    #[test]
    fn a_job_whose_agent_is_elsewhere_is_remote_unless_it_ended_here() {
        expect(Standing::set_remote, [Some(WAITING), Some(SENT), None, None], [None; 4]);
    }

    #[test]
    fn a_job_that_is_about_to_be_sent_does_not_follow_an_agent() {
        expect(Standing::follow_agent, [None, Some(SENT), None, None], [None; 4]);
    }

    #[test]
    fn a_job_of_another_instance_is_accepted_unless_it_was_sent_from_here_or_has_ended() {
        let accepted = [Some(Locus::Queued), None, Some(Locus::Queued), Some(Locus::Here)];
        expect(Standing::accept, accepted, [None; 4]);
    }

    #[test]
    fn a_job_is_asked_to_end_and_ends_and_begins_once_wherever_it_is() {
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

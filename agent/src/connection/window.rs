//! Which batches are in flight, so that both sides hold only a few of them, and which samples an `ack` frees.
//!
//! After an outage a dashboard needs current samples, and the backlog may take its time. So samples go in two lanes: live ones
//! at once, and the backlog, oldest first, beside them. Messages are numbered in the order in which they are sent, which is the
//! order in which the service handles them, so an `ack` still covers every message up to its number. The buffer frees samples
//! by age: durable live ones are only counted here until the backlog is empty. If the connection breaks before that, they are
//! sent again with the rest, and the service stores them once.

use std::collections::VecDeque;

use tokio::time::Instant;

/// How many batches of the backlog may be unacknowledged: enough to keep a distant service busy, and a quarter of a mebibyte at
/// most.
const MAX_LATE: usize = 2;
/// How many live messages are remembered one by one. More are sent, so that dashboards stay live while the service cannot make
/// anything durable; of those only the last is remembered, whose `ack` covers them all.
const MAX_LIVE: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Live,
    Late,
}

#[derive(Debug)]
pub struct Window {
    /// In the order in which they were sent.
    in_flight: VecDeque<Sent>,
    /// The last number of the live lane that was sent on this connection, or was acknowledged before it.
    live: u64,
    behind: Option<LateProgress>,
    /// Every sample up to this number is durable.
    durable: u64,
    /// When the service last acknowledged something, or last owed nothing.
    progress: Instant,
}

#[derive(Debug)]
struct Sent {
    /// The message's number.
    seq: u64,
    freshness: Freshness,
    /// The number of the last sample.
    last: u64,
    /// Whether there was a backlog when this was sent.
    is_ahead: bool,
}

/// Samples that the live lane skipped.
#[derive(Debug)]
struct LateProgress {
    /// Those up to this number were sent.
    sent: u64,
    until: u64,
    /// The last live sample after `until` that is durable.
    durable_ahead: u64,
}

impl Window {
    /// Starts after `acked`: everything later is sent again.
    pub fn new(acked: u64) -> Self {
        Self { in_flight: VecDeque::new(), live: acked, behind: None, durable: acked, progress: Instant::now() }
    }

    /// The number after which the live lane continues.
    pub fn live_place(&self) -> u64 {
        self.live
    }

    /// The numbers between which the backlog lane continues, if it has room and anything left.
    pub fn place_behind(&self) -> Option<(u64, u64)> {
        let behind = self.behind.as_ref().filter(|behind| behind.sent < behind.until)?;
        (self.in_flight(Freshness::Late) < MAX_LATE).then_some((behind.sent, behind.until))
    }

    /// Leaves what was not sent up to `until` to the backlog lane. Not while that has something: then the live lane continues
    /// in order, with its own room.
    pub fn leave_behind(&mut self, until: u64) -> bool {
        if self.behind.is_some() || until <= self.live {
            return false;
        }
        self.behind = Some(LateProgress { sent: self.live, until, durable_ahead: until });
        self.live = until;
        true
    }

    /// Records a sent message, with the number of its last sample.
    pub fn push(&mut self, seq: u64, freshness: Freshness, last: u64) {
        if self.in_flight.is_empty() {
            self.progress = Instant::now();
        }
        match (freshness, &mut self.behind) {
            (Freshness::Late, Some(behind)) => behind.sent = last,
            (Freshness::Late, None) | (Freshness::Live, _) => self.live = last,
        }
        let is_ahead = freshness == Freshness::Live && self.behind.is_some();
        self.in_flight.push_back(Sent { seq, freshness, last, is_ahead });
        if self.in_flight(Freshness::Live) > MAX_LIVE {
            self.forget_last_but_one();
        }
    }

    /// Forgets the live message before the newest: the `ack` of the newest covers both.
    fn forget_last_but_one(&mut self) {
        let mut live = self.in_flight.iter().enumerate().rev().filter(|(_, sent)| sent.freshness == Freshness::Live);
        let (Some((_, newest)), Some((place, before))) = (live.next(), live.next()) else { return };
        // Two messages on both sides of a gap free different samples.
        if newest.is_ahead == before.is_ahead {
            self.in_flight.remove(place);
        }
    }

    /// The rest of the backlog no longer exists. Returns the number up to which samples are durable then.
    pub fn nothing_more_behind(&mut self) -> u64 {
        if let Some(behind) = &mut self.behind {
            behind.sent = behind.until;
        }
        self.close_gap();
        self.durable
    }

    /// Handles an acknowledgement. Returns the number up to which all samples are durable: never beyond what was sent.
    pub fn ack(&mut self, seq: u64) -> u64 {
        while let Some(sent) = self.in_flight.pop_front_if(|oldest| oldest.seq <= seq) {
            self.progress = Instant::now();
            match &mut self.behind {
                Some(behind) if sent.is_ahead => behind.durable_ahead = sent.last,
                _ => self.durable = sent.last,
            }
            self.close_gap();
        }
        self.durable
    }

    /// Since when the service owes an acknowledgement.
    pub fn waiting_since(&self) -> Option<Instant> {
        (!self.in_flight.is_empty()).then_some(self.progress)
    }

    /// Once the backlog is acknowledged, the durable samples of the live lane count, too, and the lanes are one again.
    fn close_gap(&mut self) {
        let is_owed = self.in_flight.iter().any(|sent| !sent.is_ahead);
        if let Some(behind) = self.behind.take_if(|behind| behind.sent >= behind.until && !is_owed) {
            self.durable = behind.durable_ahead;
            // Those in flight are no longer ahead of anything, and precede the next backlog.
            self.in_flight.iter_mut().for_each(|sent| sent.is_ahead = false);
        }
    }

    fn in_flight(&self, freshness: Freshness) -> usize {
        self.in_flight.iter().filter(|sent| sent.freshness == freshness).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_messages_continue_without_acknowledgements_and_are_remembered_up_to_a_bound() {
        let mut window = Window::new(10);
        let sent = 2 * MAX_LIVE as u64;
        (1..=sent).for_each(|number| window.push(100 + number, Freshness::Live, 10 + number));

        let remembered = window.in_flight.len();
        let durable = [2, sent - 1, sent].map(|number| window.ack(100 + number));

        assert_eq!((remembered, window.live_place()), (MAX_LIVE, 10 + sent));
        assert_eq!(durable, [12, 10 + MAX_LIVE as u64 - 1, 10 + sent], "those in between wait for the last");
        assert_eq!(window.waiting_since(), None);
    }

    #[test]
    fn messages_on_both_sides_of_a_gap_are_remembered_separately() {
        let mut window = Window::new(10);
        let before = MAX_LIVE as u64;
        (1..=before).for_each(|number| window.push(100 + number, Freshness::Live, 10 + number));
        assert!(window.leave_behind(10 + before + 100));
        window.push(2_001, Freshness::Live, 10 + before + 101);
        window.push(2_002, Freshness::Live, 10 + before + 102);
        window.push(2_003, Freshness::Late, 10 + before + 100);

        assert_eq!(window.ack(100 + before), 10 + before);
        assert_eq!(window.ack(2_002), 10 + before);
        assert_eq!(window.ack(2_003), 10 + before + 102);
    }

    #[test]
    fn an_ack_beyond_what_was_sent_frees_only_what_was_sent() {
        let mut window = Window::new(10);
        window.push(101, Freshness::Live, 11);

        assert_eq!(window.ack(u64::MAX), 11);
        assert_eq!(window.waiting_since(), None);
    }

    #[test]
    fn an_old_ack_changes_nothing() {
        let mut window = Window::new(10);
        window.push(101, Freshness::Live, 11);

        assert_eq!(window.ack(100), 10);
        assert!(window.waiting_since().is_some());
    }

    #[test]
    fn durable_live_samples_free_nothing_until_the_backlog_is_durable() {
        let mut window = Window::new(10);
        assert!(window.leave_behind(999));
        window.push(101, Freshness::Live, 1000);
        window.push(102, Freshness::Late, 500);
        window.push(103, Freshness::Live, 1001);
        window.push(104, Freshness::Late, 999);

        let durable = [101, 102, 103, 104].map(|seq| window.ack(seq));

        assert_eq!(durable, [10, 500, 500, 1001]);
        assert_eq!((window.live_place(), window.place_behind()), (1001, None));
    }

    #[test]
    fn samples_before_a_gap_are_freed_and_those_after_it_wait() {
        let mut window = Window::new(10);
        window.push(101, Freshness::Live, 11);
        assert!(window.leave_behind(20));
        window.push(102, Freshness::Live, 21);

        assert_eq!(window.ack(102), 11);
        assert_eq!(window.place_behind(), Some((11, 20)));
    }

    #[test]
    fn messages_in_flight_when_a_gap_closes_precede_the_next_gap() {
        let mut window = Window::new(10);
        assert!(window.leave_behind(20));
        window.push(101, Freshness::Late, 20);
        window.push(102, Freshness::Live, 21);
        assert_eq!(window.ack(101), 20);
        assert!(window.leave_behind(30));

        assert_eq!(window.ack(102), 21);
        assert_eq!(window.place_behind(), Some((21, 30)));
    }

    #[test]
    fn an_ack_for_several_messages_counts_each() {
        let mut window = Window::new(10);
        assert!(window.leave_behind(20));
        window.push(101, Freshness::Live, 21);
        window.push(102, Freshness::Late, 20);
        window.push(103, Freshness::Live, 22);

        assert_eq!(window.ack(103), 22);
    }

    #[test]
    fn live_messages_take_no_room_of_the_backlog() {
        let mut behind_first = Window::new(10);
        assert!(behind_first.leave_behind(1000));
        behind_first.push(101, Freshness::Late, 11);
        behind_first.push(102, Freshness::Late, 12);
        let mut live_first = Window::new(10);
        assert!(live_first.leave_behind(1000));
        (1..=MAX_LIVE as u64).for_each(|number| live_first.push(100 + number, Freshness::Live, 1000 + number));

        assert_eq!((behind_first.live_place(), behind_first.place_behind()), (1000, None));
        assert_eq!(live_first.place_behind(), Some((10, 1000)));
    }

    #[test]
    fn a_gap_opens_once_at_a_time() {
        let mut window = Window::new(10);

        assert!(!window.leave_behind(10), "nothing is left");
        assert!(window.leave_behind(20));
        assert!(!window.leave_behind(30));
    }

    #[test]
    fn dropped_samples_are_not_waited_for() {
        let mut window = Window::new(10);
        assert!(window.leave_behind(1000));
        window.push(101, Freshness::Live, 1001);
        window.push(102, Freshness::Late, 600);

        let owed = window.nothing_more_behind();
        let durable = window.ack(102);

        assert_eq!((owed, durable, window.place_behind()), (10, 1001, None));
    }
}

//! How far an agent's clock is off, updated from its messages.
//!
//! Pure. A message takes time, so its sending time by the agent's clock is never later than the agent's time on
//! arrival: of several messages, the one with the largest value was the fastest. All times are measured against this
//! machine's boot-time clock, which cannot be set, so setting this machine's clock never looks like a change of the
//! agent's.

use std::collections::VecDeque;

/// A larger move is reported.
pub const NOTABLE_MS: i64 = 5_000;

/// A wrong clock is right again below this offset, so that a clock that hovers around a limit is reported only once.
const RIGHT_AGAIN_MS: i64 = 2_500;

/// Messages that arrive closer together count as one: a backlog in the socket arrives all at once.
const TOGETHER_MS: i64 = 1_000;

/// Arrivals that are considered: more than a catch-up puts between two live messages.
const MAX_ARRIVALS: usize = 12;

/// Messages that indicate a clock behind the known one may differ by at most this; otherwise they were merely delayed.
const STEADY_WITHIN_MS: i64 = 1_500;

/// For how long, and in how many messages, they must agree; or for how long in two messages, if messages are rare.
const STEADY_FOR_MS: i64 = 3_000;
const STEADY_MESSAGES: usize = 3;
const STEADY_FOR_LONG_MS: i64 = 30_000;

/// Whether a clock with this offset is wrong, given whether it was wrong before.
pub fn is_wrong(was_wrong: bool, offset_ms: i64) -> bool {
    let bound_ms = if was_wrong { RIGHT_AGAIN_MS } else { NOTABLE_MS };
    offset_ms.unsigned_abs() > bound_ms.unsigned_abs()
}

/// What one message says about the agent's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// When the message was sent.
    SentAt(i64),
    /// From an agent that does not report that: when its newest sample was taken, which may be long ago.
    TakenAt(i64),
}

/// When a message arrived, and the agent's time minus this machine's time since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrival {
    at_boot_ms: i64,
    epoch_ms: i64,
}

/// An agent's clock, as its messages report it.
#[derive(Debug, Clone)]
pub struct AgentClock {
    /// The agent's time minus this machine's time since boot, as far as is known.
    epoch_ms: i64,
    /// Whether the agent has ever reported when it sent a message.
    is_told: bool,
    last_sent_at_ms: Option<i64>,
    arrivals: VecDeque<Arrival>,
    /// The latest arrivals that contradict the others, as long as they agree with each other.
    contrary: VecDeque<Arrival>,
}

impl AgentClock {
    /// The clock at a handshake that arrives now. An agent that does not report when it sent it is assumed to have the
    /// right time, `wall_ms`.
    pub fn new(sent_at_ms: Option<i64>, wall_ms: i64, boot_ms: i64) -> Self {
        let epoch_ms = sent_at_ms.unwrap_or(wall_ms) - boot_ms;
        let mut clock = Self {
            epoch_ms,
            is_told: sent_at_ms.is_some(),
            last_sent_at_ms: sent_at_ms,
            arrivals: VecDeque::new(),
            contrary: VecDeque::new(),
        };
        clock.arrivals.push_back(Arrival { at_boot_ms: boot_ms, epoch_ms });
        clock
    }

    /// How far the clock is ahead of one that shows `wall_ms` now; `None` if the agent never reported its time.
    pub fn offset_ms(&self, wall_ms: i64, boot_ms: i64) -> Option<i64> {
        self.is_told.then(|| self.epoch_ms + boot_ms - wall_ms)
    }

    /// The agent's present time.
    pub fn now_ms(&self, boot_ms: i64) -> i64 {
        self.epoch_ms + boot_ms
    }

    /// Processes what a message that arrives now says.
    pub fn heard(&mut self, said: Said, boot_ms: i64) {
        match said {
            Said::SentAt(sent_at_ms) => {
                let went_back = self.last_sent_at_ms.replace(sent_at_ms).is_some_and(|last| sent_at_ms < last);
                if went_back || !self.is_told {
                    // Messages arrive in order, so only a clock that was set back reports an earlier time.
                    self.forget();
                }
                self.is_told = true;
                let arrival = Arrival { at_boot_ms: boot_ms, epoch_ms: sent_at_ms - boot_ms };
                if self.arrivals.is_empty() || arrival.epoch_ms >= self.epoch_ms - NOTABLE_MS {
                    self.agree(arrival);
                } else {
                    self.contradict(arrival);
                }
            }
            Said::TakenAt(taken_at_ms) => {
                let arrival = Arrival { at_boot_ms: boot_ms, epoch_ms: taken_at_ms - boot_ms };
                if arrival.epoch_ms.abs_diff(self.epoch_ms) <= NOTABLE_MS.unsigned_abs() {
                    self.agree(arrival);
                } else {
                    // It may be a past sample, or one with an arbitrary time.
                    self.contradict(arrival);
                }
            }
        }
    }

    fn agree(&mut self, arrival: Arrival) {
        self.contrary.clear();
        match self.arrivals.back_mut() {
            Some(last) if arrival.at_boot_ms - last.at_boot_ms < TOGETHER_MS => {
                last.epoch_ms = last.epoch_ms.max(arrival.epoch_ms);
            }
            _ => self.arrivals.push_back(arrival),
        }
        if self.arrivals.len() > MAX_ARRIVALS {
            self.arrivals.pop_front();
        }
        self.epoch_ms = self.arrivals.iter().map(|arrival| arrival.epoch_ms).max().unwrap_or(self.epoch_ms);
    }

    /// One delayed message does not mean that the clock changed; several that agree for a while do.
    fn contradict(&mut self, arrival: Arrival) {
        let differs = |other: &Arrival| other.epoch_ms.abs_diff(arrival.epoch_ms) > STEADY_WITHIN_MS.unsigned_abs();
        if self.contrary.iter().any(differs) {
            self.contrary.clear();
        }
        self.contrary.push_back(arrival);
        let since = self.contrary.front().map_or(0, |first| arrival.at_boot_ms - first.at_boot_ms);
        let is_steady = since >= STEADY_FOR_MS && self.contrary.len() >= STEADY_MESSAGES;
        if is_steady || since >= STEADY_FOR_LONG_MS {
            self.is_told = true;
            self.arrivals = std::mem::take(&mut self.contrary);
            self.epoch_ms = self.arrivals.iter().map(|arrival| arrival.epoch_ms).max().unwrap_or(self.epoch_ms);
        } else if self.contrary.len() > MAX_ARRIVALS {
            // The first one says since when they disagree.
            self.contrary.remove(1);
        }
    }

    fn forget(&mut self) {
        self.arrivals.clear();
        self.contrary.clear();
    }
}

#[cfg(test)]
mod tests;

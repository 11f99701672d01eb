//! Tracks how far the agent's clock is off, from its messages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signalbox_protocol::agent::Metrics;
use uuid::Uuid;

use super::services::Services;
use super::{Active, AgentSession, Phase};
use crate::clock::agent::{NOTABLE_MS, Said, is_wrong};
use crate::ingest::ArrivalTime;
use crate::store::{CLOCK_IS_WRONG, Redescribed};

/// After the service was paused or its own clock was set, this much time passes before the service reports that an
/// agent's clock has moved: its own clock may not be right yet.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

/// Moves of one agent's clock that the service reports in a row: more than a person makes who sets it by hand.
const MOVES_AT_ONCE: u32 = 10;

/// After those, the service reports one move in this time. Each is a write, and may be an event, and the agent may be
/// hostile.
const A_MOVE_EVERY: Duration = Duration::from_secs(60);

/// The state of an agent's clock that was last written and shown.
#[derive(Debug)]
pub(super) struct ClockTold {
    /// How far ahead the clock was.
    offset_ms: i64,
    is_wrong: bool,
    moves_left: u32,
    /// When a move was last added to those that are left.
    refilled: Instant,
}

impl ClockTold {
    pub fn new(offset_ms: i64, is_wrong: bool) -> Self {
        Self { offset_ms, is_wrong, moves_left: MOVES_AT_ONCE, refilled: Instant::now() }
    }

    /// Takes the agent's present offset. `is_certain` says that the service's own clock is not in doubt. Returns
    /// whether to report the change; a change over the limit is reported later.
    fn moves_to(&mut self, offset_ms: i64, is_certain: bool, now: Instant) -> bool {
        let is_wrong = if is_certain { is_wrong(self.is_wrong, offset_ms) } else { self.is_wrong };
        let has_moved = offset_ms.abs_diff(self.offset_ms) > NOTABLE_MS.unsigned_abs();
        // A change that people see may use moves that others may not.
        let left_over = if is_wrong == self.is_wrong { MOVES_AT_ONCE / 2 } else { 0 };
        if !(has_moved || is_wrong != self.is_wrong) || !self.takes_one(left_over, now) {
            return false;
        }
        (self.offset_ms, self.is_wrong) = (offset_ms, is_wrong);
        true
    }

    /// Uses one of the moves that are left, but keeps `left_over` of them.
    fn takes_one(&mut self, left_over: u32, now: Instant) -> bool {
        while self.moves_left < MOVES_AT_ONCE && now.duration_since(self.refilled) >= A_MOVE_EVERY {
            self.moves_left += 1;
            self.refilled += A_MOVE_EVERY;
        }
        if self.moves_left == MOVES_AT_ONCE {
            self.refilled = now;
        }
        let is_left = self.moves_left > left_over;
        self.moves_left -= u32::from(is_left);
        is_left
    }
}

impl AgentSession {
    /// Reads the agent's clock from a message, and returns the service's time and the agent's offset.
    pub(super) fn hear_clock(&mut self, metrics: &Metrics) -> ArrivalTime {
        let (now, boot_ms) = (self.services.clock.now(), self.services.clock.boot_ms());
        let Phase::Active(active) = &mut self.phase else { return ArrivalTime { now, offset_ms: 0 } };
        let newest = metrics.samples.iter().map(|sample| sample.timestamp).max();
        let said =
            metrics.sent_at.map(|at| Said::SentAt(at.as_millis())).or(newest.map(|at| Said::TakenAt(at.as_millis())));
        if let Some(said) = said {
            active.clock.heard(said, boot_ms);
        }
        let offset_ms = active.clock.offset_ms(now.as_millis(), boot_ms);
        self.services.fleet.set_clock_offset(active.server_id, offset_ms);
        if let Some(offset_ms) = offset_ms {
            active.note_offset(&self.services, offset_ms);
        }
        ArrivalTime { now, offset_ms: offset_ms.unwrap_or_default() }
    }
}

impl Active {
    /// Stores the clock's offset if it differs from the stored one. The same transaction stores the event that the
    /// clock went wrong or was corrected.
    fn note_offset(&mut self, services: &Services, offset_ms: i64) {
        if services.clock.disturbed().is_some_and(|ago| ago < SETTLES_WITHIN)
            || !self.clock_told.moves_to(offset_ms, services.clock.doubt().is_none(), Instant::now())
        {
            return;
        }
        let (server_id, session_id, at) = (self.server_id, self.session_id, services.clock.now());
        // The handshake wrote the description, so it can be parsed.
        if let Ok(Value::Object(mut description)) = serde_json::from_str(&self.description) {
            description.insert("clock_offset_ms".to_owned(), json!(offset_ms));
            description.insert(CLOCK_IS_WRONG.to_owned(), json!(self.clock_told.is_wrong));
            let agent = Value::Object(description).to_string();
            self.description = agent.as_str().into();
            services.recorder.redescribe(Redescribed { server_id, session_id, at, agent });
        }
        moved(server_id, offset_ms);
    }
}

/// Reports that an agent's clock moved by more than 5 s, or was off by more than that at the handshake. `offset_ms` is
/// how far it is ahead of the service's clock. Only this function reports it.
pub(super) fn moved(server_id: Uuid, offset_ms: i64) {
    metrics::counter!("signalbox_agent_clock_moves_total").increment(1);
    if offset_ms.unsigned_abs() > NOTABLE_MS.unsigned_abs() {
        tracing::warn!(server.id = %server_id, offset_ms, "the agent's clock is off");
    } else {
        tracing::info!(server.id = %server_id, offset_ms, "the agent's clock is right again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_is_reported_once_when_it_goes_wrong_and_then_each_five_seconds() {
        let (mut told, began) = (ClockTold::new(0, false), Instant::now());

        let moves: Vec<i64> =
            (0..20_000).step_by(100).filter(|offset_ms| told.moves_to(*offset_ms, true, began)).collect();

        assert_eq!(moves, [5_100, 10_200, 15_300]);
        assert!(!told.moves_to(15_000, true, began));
        assert!(told.moves_to(2_400, true, began) && !told.is_wrong);
    }

    #[test]
    fn no_agent_clock_is_called_wrong_while_our_own_is_in_doubt() {
        let (mut told, began) = (ClockTold::new(0, false), Instant::now());

        assert!(
            told.moves_to(7_200_000, false, began) && !told.is_wrong,
            "the session reports how far it is off all the same"
        );
        assert!(!told.moves_to(7_200_000, false, began));
        assert!(told.moves_to(7_200_000, true, began) && told.is_wrong);
    }

    #[test]
    fn a_clock_set_back_and_forth_is_reported_a_few_times_and_then_once_a_minute() {
        let (mut told, began) = (ClockTold::new(0, false), Instant::now());
        let mut in_a_second = |second: u64| {
            let offset_ms = if told.is_wrong { 0 } else { 3_600_000 };
            told.moves_to(offset_ms, true, began + Duration::from_secs(second))
        };

        let at_once = (0..60).filter(|second| in_a_second(*second)).count();
        let later = (60..3_660).filter(|second| in_a_second(*second)).count();

        assert_eq!((at_once, later), (10, 60));
    }
}

//! When a threshold fires and when it has recovered. Pure: times are the agent's, and come with the values.
//!
//! Only the present fires and recovers: [`State::live`]. What an agent sends of an outage comes behind its live samples,
//! oldest first, and goes to [`State::late`]: it tells for how long the present has been what it is, and nothing else.
//! No data is not recovery; a pause that is longer than twice the duration (five minutes at least) breaks a run of
//! crossing samples all the same, because nobody knows what was in it.

use super::kind::Comparison;

/// The shortest pause that breaks a run.
const LEAST_GAP_MS: i64 = 5 * 60 * 1000;

/// How far the last late sample may be from the first live one to follow upon each other, unless samples are further
/// apart.
const JOINED_WITHIN_MS: i64 = 15 * 1000;

/// What crosses, for how long, and what has recovered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    pub comparison: Comparison,
    pub threshold: f64,
    /// Where it counts as recovered; on the good side of the threshold, or none.
    pub clear: Option<f64>,
    pub duration_ms: i64,
}

impl Rule {
    pub fn crosses(&self, value: f64) -> bool {
        self.comparison.holds(value, self.threshold)
    }

    /// Whether what has fired goes on.
    pub fn goes_on(&self, value: f64) -> bool {
        self.comparison.holds(value, self.clear.unwrap_or(self.threshold))
    }

    fn gap_ms(&self) -> i64 {
        self.duration_ms.saturating_mul(2).max(LEAST_GAP_MS)
    }
}

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing is wrong, or not for long enough.
    #[default]
    Clear,
    /// It has fired and has not recovered.
    Firing,
    /// Somebody resolved it although the metric had not recovered: it waits for that.
    Muted,
}

/// What a value brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// It has crossed for long enough, since this time.
    Fires {
        since: i64,
    },
    /// It still crosses, after it has fired.
    GoesOn,
    Recovers,
    /// What was resolved by hand has recovered, and may fire again.
    Rearms,
}

/// Samples in a row that cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    since: i64,
    last: i64,
    /// How far the last was from the one before.
    step: i64,
}

impl Run {
    fn at(at: i64) -> Self {
        Self { since: at, last: at, step: 0 }
    }

    fn extended(run: Option<Self>, at: i64, gap_ms: i64) -> Self {
        match run {
            Some(run) if at >= run.last && at - run.last <= gap_ms => Self { step: at - run.last, last: at, ..run },
            _ => Self::at(at),
        }
    }
}

/// What is remembered of one rule on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    phase: Phase,
    newest: Option<i64>,
    /// Up to the newest sample.
    run: Option<Run>,
    /// Of late samples.
    late: Option<Run>,
    /// The last time at which it did not cross, or before which nothing counts.
    barrier: Option<i64>,
}

impl State {
    /// Begins in a phase; what was up to `barrier` does not count.
    pub fn new(phase: Phase, barrier: Option<i64>) -> Self {
        Self { phase, barrier, ..Self::default() }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Since when it crosses, while that is not long enough to fire.
    pub fn crossing_since(&self) -> Option<i64> {
        self.run.map(|run| run.since)
    }

    /// What was up to then does not count.
    pub fn not_before(&mut self, at: i64) {
        self.barrier = self.barrier.max(Some(at));
    }

    /// Somebody resolved by hand what had fired.
    pub fn mute(&mut self) {
        self.phase = Phase::Muted;
    }

    /// A value of now.
    pub fn live(&mut self, rule: &Rule, at: i64, value: f64) -> Step {
        match self.newest {
            Some(newest) if at == newest => return Step::Nothing,
            // The machine's clock was ahead, and was put right.
            Some(newest) if at < newest => (self.run, self.late, self.barrier) = (None, None, None),
            _ => {}
        }
        self.newest = Some(at);
        match self.phase {
            Phase::Firing | Phase::Muted if rule.goes_on(value) => {
                if self.phase == Phase::Firing {
                    Step::GoesOn
                } else {
                    Step::Nothing
                }
            }
            Phase::Firing => self.recover(at, Step::Recovers),
            Phase::Muted => self.recover(at, Step::Rearms),
            Phase::Clear if !rule.crosses(value) => self.recover(at, Step::Nothing),
            Phase::Clear => {
                self.run = Some(Run::extended(self.run, at, rule.gap_ms()));
                self.join();
                self.fire_if_due(rule)
            }
        }
    }

    /// A value of the past, from an agent that catches up. They come in order.
    pub fn late(&mut self, rule: &Rule, at: i64, value: f64) -> Step {
        let is_known = self.newest.is_some_and(|newest| at >= newest) || self.barrier.is_some_and(|end| at <= end);
        if self.phase != Phase::Clear || is_known {
            return Step::Nothing;
        }
        if !rule.crosses(value) {
            (self.barrier, self.late) = (Some(at), None);
            if let Some(run) = &mut self.run
                && at >= run.since
            {
                // It was no run after all. What of it comes behind this is not kept, but its end does.
                *run = Run::at(run.last);
            }
            return Step::Nothing;
        }
        if self.late.is_some_and(|late| at < late.last) {
            return Step::Nothing;
        }
        self.late = Some(Run::extended(self.late, at, rule.gap_ms()));
        self.join();
        self.fire_if_due(rule)
    }

    fn recover(&mut self, at: i64, step: Step) -> Step {
        self.phase = Phase::Clear;
        (self.run, self.late, self.barrier) = (None, None, Some(at));
        step
    }

    /// Makes one run of the late one and the live one, once nothing is missing between them.
    fn join(&mut self) {
        if let (Some(run), Some(late)) = (&mut self.run, self.late)
            && late.last < run.since
            && run.since - late.last <= JOINED_WITHIN_MS.max(late.step.saturating_mul(2))
        {
            run.since = late.since;
        }
    }

    fn fire_if_due(&mut self, rule: &Rule) -> Step {
        match self.run {
            Some(run) if run.last - run.since >= rule.duration_ms => {
                self.phase = Phase::Firing;
                (self.run, self.late) = (None, None);
                Step::Fires { since: run.since }
            }
            _ => Step::Nothing,
        }
    }
}

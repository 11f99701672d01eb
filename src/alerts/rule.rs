//! Decides when a threshold fires and when it has recovered. Pure: times are the agent's, and come with the values.
//!
//! Only current samples fire and recover: [`State::live`]. Samples that an agent sends after an outage go to
//! [`State::late`]: they only show how long the current state has lasted. No data is not a recovery: a pause breaks a run
//! of crossing samples only if it is longer than twice the duration, and than five minutes. But a late sample fires
//! nothing while there is an unusual pause right before the newest sample, because the samples of that pause are still on
//! their way.
//!
//! After a restart of the service a state is built by [`State::new`] and gets the stored samples: all but the newest by
//! `late`, in order, and the newest by `live`. The result is the state from before the restart, because a state depends
//! only on the samples, the phase and the barrier, not on the order in which samples arrive.

use crate::alert_words::Comparison;

/// The shortest pause that breaks a run.
const LEAST_GAP_MS: i64 = 5 * 60 * 1000;

/// A pause up to this long is never unusual. A longer one is if it is more than twice as long as the one before it.
const USUAL_WITHIN_MS: i64 = 15 * 1000;

/// How many spans are kept. An outage during the catch-up after another outage makes five.
const MAX_SPANS: usize = 6;

/// The condition of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    pub comparison: Comparison,
    pub threshold: f64,
    /// The value at which it has recovered, on the good side of the threshold; `None` for the threshold itself.
    pub clear: Option<f64>,
    pub duration_ms: i64,
}

impl Rule {
    pub fn crosses(&self, value: f64) -> bool {
        self.comparison.holds(value, self.threshold)
    }

    /// Returns whether a firing rule keeps firing at this value.
    pub fn goes_on(&self, value: f64) -> bool {
        self.comparison.holds(value, self.clear.unwrap_or(self.threshold))
    }

    fn gap_ms(&self) -> i64 {
        self.duration_ms.saturating_mul(2).max(LEAST_GAP_MS)
    }
}

/// The phase of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// The value does not cross, or not for long enough.
    #[default]
    Clear,
    /// It has fired and has not recovered.
    Firing,
    /// Somebody resolved its alert before the metric recovered: it cannot fire until it has.
    Muted,
}

/// The effect of a value.
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
    /// The metric has recovered after its alert was resolved by hand, and may fire again.
    Rearms,
}

/// Crossing samples in a row at a regular interval, with none missing in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: i64,
    to: i64,
    /// Milliseconds between the last sample and the one before it; 0 if not known.
    step: i64,
    /// The longest pause within the span.
    widest: i64,
}

impl Span {
    /// Returns whether the pause from the span to a sample is a usual one.
    fn is_usual_until(&self, at: i64, gap_ms: i64) -> bool {
        at - self.to <= if self.step == 0 { gap_ms } else { self.usual_ms() }
    }

    /// Returns the longest pause after the span that is still usual.
    fn usual_ms(&self) -> i64 {
        self.step.saturating_mul(2).max(USUAL_WITHIN_MS)
    }

    /// Returns whether the pause from the span to a sample does not break the run. An agent with a long interval has long
    /// pauses.
    fn holds_until(&self, at: i64, gap_ms: i64) -> bool {
        at - self.to <= gap_ms || self.is_usual_until(at, gap_ms)
    }

    /// Returns whether no sample is missing between the span and the next. The pause before a lone sample may have been an
    /// outage, so it does not show what is usual.
    fn is_continued_by(&self, next: &Self) -> bool {
        self.from < self.to && next.from - self.to <= self.step + self.step / 2
    }

    /// Takes in a sample right before the span that was not known until now.
    fn follow(&mut self, at: i64) {
        if self.from == self.to {
            self.step = self.from - at;
        }
    }

    fn append(&mut self, next: &Self) {
        let pause = next.from - self.to;
        self.step = if next.from == next.to { pause } else { next.step };
        self.widest = self.widest.max(pause).max(next.widest);
        self.to = next.to;
    }
}

/// The kind of sample that causes an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Live,
    Late,
}

/// The state of one rule on one target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    phase: Phase,
    /// The time of the newest current sample.
    newest: Option<i64>,
    /// Whether that sample is still current: its agent has not disconnected since.
    is_present: bool,
    /// The last time at which the value did not cross, or up to which samples are ignored.
    barrier: Option<i64>,
    /// Whether a sample was measured at that time.
    is_barrier_measured: bool,
    /// The spans of crossing samples since then, sorted.
    spans: Vec<Span>,
}

impl State {
    /// Starts in a phase; samples up to `barrier` do not count.
    pub fn new(phase: Phase, barrier: Option<i64>) -> Self {
        Self { phase, barrier, ..Self::default() }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns since when the value has been crossing, if it is crossing and has not fired.
    pub fn crossing_since(&self, rule: &Rule) -> Option<i64> {
        self.since(self.newest?, rule.gap_ms(), By::Live)
    }

    /// Ignores samples up to this time.
    pub fn not_before(&mut self, at: i64) {
        self.barrier = self.barrier.max(Some(at));
    }

    /// Takes in that somebody resolved the alert. If the metric has recovered in the meantime, nothing changes.
    pub fn mute(&mut self) {
        if self.phase == Phase::Firing {
            self.phase = Phase::Muted;
        }
    }

    /// Takes in that the agent has disconnected: nothing fires until there is a current sample again.
    pub fn part(&mut self) {
        self.is_present = false;
    }

    /// Takes in a current value.
    pub fn live(&mut self, rule: &Rule, at: i64, value: f64) -> Step {
        let decided = self.newest.max(self.barrier);
        if decided == Some(at) {
            self.is_barrier_measured |= self.barrier == Some(at);
            return Step::Nothing;
        }
        if decided.max(self.spans.last().map(|span| span.to)).is_some_and(|known| at < known) {
            self.put_clock_right(at);
        }
        (self.newest, self.is_present) = (Some(at), true);
        match self.phase {
            Phase::Firing if rule.goes_on(value) => Step::GoesOn,
            Phase::Firing => self.recover(at, Step::Recovers),
            Phase::Muted if rule.goes_on(value) => Step::Nothing,
            Phase::Muted => self.recover(at, Step::Rearms),
            Phase::Clear if !rule.crosses(value) => self.recover(at, Step::Nothing),
            Phase::Clear => {
                self.add(at, rule.gap_ms());
                self.fire_if_due(rule, By::Live)
            }
        }
    }

    /// Takes in that the target no longer exists.
    pub fn gone(&mut self, at: i64) -> Step {
        self.newest = self.newest.max(Some(at));
        match self.phase {
            Phase::Firing => self.recover(at, Step::Recovers),
            Phase::Muted => self.recover(at, Step::Rearms),
            Phase::Clear => self.recover(at, Step::Nothing),
        }
    }

    /// Takes in a value of the past, from an agent that catches up.
    pub fn late(&mut self, rule: &Rule, at: i64, value: f64) -> Step {
        if self.barrier.is_some_and(|end| at <= end) {
            self.is_barrier_measured |= self.barrier == Some(at);
            return Step::Nothing;
        }
        let is_known = self.newest == Some(at) || self.spans.iter().any(|span| span.from == at || span.to == at);
        if self.phase != Phase::Clear || is_known {
            return Step::Nothing;
        }
        if rule.crosses(value) {
            self.add(at, rule.gap_ms());
            self.fire_if_due(rule, By::Late)
        } else {
            self.cut(at);
            Step::Nothing
        }
    }

    /// Takes in that the machine's clock was ahead and has been corrected. Crossing samples later than now are dropped, but a
    /// recovery still counts.
    fn put_clock_right(&mut self, at: i64) {
        if self.barrier.is_some_and(|end| end >= at) {
            (self.barrier, self.is_barrier_measured) = (Some(at - 1), false);
        }
        self.spans.retain(|span| span.from < at);
        if let Some(last) = self.spans.last_mut()
            && last.to >= at
        {
            // Which of its samples was the last before now is not known, so its interval is subtracted.
            last.to = (at - last.step.max(1)).max(last.from);
        }
    }

    fn recover(&mut self, at: i64, step: Step) -> Step {
        self.phase = Phase::Clear;
        (self.barrier, self.is_barrier_measured) = (Some(at), true);
        self.spans.clear();
        step
    }

    /// Records that the value crossed at this time.
    fn add(&mut self, at: i64, gap_ms: i64) {
        let place = self.spans.partition_point(|span| span.from <= at);
        let before = place.checked_sub(1).and_then(|place| self.spans.get(place));
        if before.is_some_and(|span| at <= span.to) {
            return;
        }
        let measured = before.map(|span| span.to).or(self.barrier.filter(|_| self.is_barrier_measured));
        let step = measured.map_or(0, |measured| at - measured);
        if let Some(next) = self.spans.get_mut(place) {
            next.follow(at);
        }
        self.spans.insert(place, Span { from: at, to: at, step, widest: 0 });
        self.spans.dedup_by(|next, span| {
            let is_one = span.is_continued_by(next);
            if is_one {
                span.append(next);
            }
            is_one
        });
        if self.spans.len() > MAX_SPANS {
            self.forget_a_pause(gap_ms);
        }
    }

    /// Joins the two spans with the shortest pause between them, in which the fewest samples are missing.
    fn forget_a_pause(&mut self, gap_ms: i64) {
        let pauses = self.spans.windows(2).map(|two| match two {
            [span, next] => next.from - span.to,
            _ => i64::MAX,
        });
        let Some((index, _)) = pauses.enumerate().min_by_key(|(_, pause)| *pause) else { return };
        let next = self.spans.get(index + 1).copied();
        match self.spans.get_mut(index).zip(next) {
            Some((span, next)) if span.holds_until(next.from, gap_ms) => {
                span.append(&next);
                self.spans.remove(index + 1);
            }
            // If even the shortest pause breaks the run, the spans before any pause no longer matter.
            _ => _ = self.spans.remove(0),
        }
    }

    /// Records that the value did not cross at this time, which ends the run before it.
    fn cut(&mut self, at: i64) {
        (self.barrier, self.is_barrier_measured) = (Some(at), true);
        self.spans.retain(|span| span.to > at);
        if let Some(first) = self.spans.first_mut() {
            if first.from <= at {
                // The first sample after this time is not known, but it was no later than the longest pause after it.
                first.from = at.saturating_add(first.widest).min(first.to);
            } else {
                first.follow(at);
            }
        }
    }

    /// Returns since when the value has crossed without a break up to the newest current sample; `None` if that sample is not
    /// known to cross.
    fn since(&self, newest: i64, gap_ms: i64, by: By) -> Option<i64> {
        let mut spans = self.spans.iter().rev().skip_while(|span| span.from > newest);
        let mut first = spans.next().filter(|span| newest <= span.to)?;
        for span in spans {
            let is_open = by == By::Late && first.from == newest && newest - span.to > span.usual_ms();
            if is_open || !span.holds_until(first.from, gap_ms) {
                break;
            }
            first = span;
        }
        Some(first.from)
    }

    fn fire_if_due(&mut self, rule: &Rule, by: By) -> Step {
        match self
            .newest
            .filter(|_| self.is_present)
            .and_then(|newest| Some((newest, self.since(newest, rule.gap_ms(), by)?)))
        {
            Some((newest, since)) if newest - since >= rule.duration_ms => {
                self.phase = Phase::Firing;
                self.spans.clear();
                Step::Fires { since }
            }
            _ => Step::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;

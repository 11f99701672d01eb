//! When a threshold fires and when it has recovered. Pure: times are the agent's, and come with the values.
//!
//! Only the present fires and recovers: [`State::live`]. What an agent sends of an outage goes to [`State::late`]: it
//! tells for how long the present has been what it is, and nothing else. No data is not recovery: a pause does not break
//! a run of crossing samples unless it is longer than twice the duration (five minutes at least). But a late sample fires
//! nothing while there is an unusual pause right before the newest one: the rest of what was in it is on its way.
//!
//! After a restart of the service a state is made by [`State::new`], and gets what is kept: all samples but the newest
//! by `late`, in order, and the newest by `live`. It is what it was then, because it depends on the samples, the phase
//! and the barrier alone, not on the order in which they came.

use crate::alert_words::Comparison;

/// The shortest pause that breaks a run.
const LEAST_GAP_MS: i64 = 5 * 60 * 1000;

/// A pause up to this long is never unusual. Longer ones are where they are more than twice as long as the one before.
const USUAL_WITHIN_MS: i64 = 15 * 1000;

/// How many spans are told apart. An outage during the catch-up after another makes five.
const MOST_SPANS: usize = 6;

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

/// Crossing samples in a row, as regular as can be: nothing is missing between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: i64,
    to: i64,
    /// How far the last sample was from the one before; 0 where that is not known.
    step: i64,
    /// The longest pause within.
    widest: i64,
}

impl Span {
    /// Whether the pause up to a sample is a usual one.
    fn is_usual_until(&self, at: i64, gap_ms: i64) -> bool {
        at - self.to <= if self.step == 0 { gap_ms } else { self.usual_ms() }
    }

    /// The longest pause behind it that is not unusual, as far as is known.
    fn usual_ms(&self) -> i64 {
        self.step.saturating_mul(2).max(USUAL_WITHIN_MS)
    }

    /// Whether the pause up to a sample is no end. What an agent measures seldom has long ones.
    fn holds_until(&self, at: i64, gap_ms: i64) -> bool {
        at - self.to <= gap_ms || self.is_usual_until(at, gap_ms)
    }

    /// Whether nothing is missing up to the next. What a lone sample was behind may have been an outage, so it says
    /// nothing of what is usual.
    fn is_continued_by(&self, next: &Self) -> bool {
        self.from < self.to && next.from - self.to <= self.step + self.step / 2
    }

    /// There was a sample before it that was not known.
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

/// What kind of sample makes it look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Live,
    Late,
}

/// What is remembered of one rule on one target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    phase: Phase,
    /// The newest sample of now.
    newest: Option<i64>,
    /// Whether it is of now still: its agent has not gone since.
    is_present: bool,
    /// The last time at which it did not cross, or up to which nothing counts.
    barrier: Option<i64>,
    /// Whether there was a sample at that time.
    is_barrier_measured: bool,
    /// What crossed since, sorted.
    spans: Vec<Span>,
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
    pub fn crossing_since(&self, rule: &Rule) -> Option<i64> {
        self.since(self.newest?, rule.gap_ms(), By::Live)
    }

    /// What was up to then does not count.
    pub fn not_before(&mut self, at: i64) {
        self.barrier = self.barrier.max(Some(at));
    }

    /// Somebody resolved by hand what had fired. What has recovered meanwhile stays recovered.
    pub fn mute(&mut self) {
        if self.phase == Phase::Firing {
            self.phase = Phase::Muted;
        }
    }

    /// The agent has gone. What was now is the past, until there is a value of now again.
    pub fn part(&mut self) {
        self.is_present = false;
    }

    /// A value of now.
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

    /// What is measured is not there any more.
    pub fn gone(&mut self, at: i64) -> Step {
        self.newest = self.newest.max(Some(at));
        match self.phase {
            Phase::Firing => self.recover(at, Step::Recovers),
            Phase::Muted => self.recover(at, Step::Rearms),
            Phase::Clear => self.recover(at, Step::Nothing),
        }
    }

    /// A value of the past, from an agent that catches up.
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

    /// The machine's clock was ahead: what is newer than now never was, but that it recovered counts.
    fn put_clock_right(&mut self, at: i64) {
        if self.barrier.is_some_and(|end| end >= at) {
            (self.barrier, self.is_barrier_measured) = (Some(at - 1), false);
        }
        self.spans.retain(|span| span.from < at);
        if let Some(last) = self.spans.last_mut()
            && last.to >= at
        {
            // Which of its samples was the last before now is not known, but about how far they were apart.
            last.to = (at - last.step.max(1)).max(last.from);
        }
    }

    fn recover(&mut self, at: i64, step: Step) -> Step {
        self.phase = Phase::Clear;
        (self.barrier, self.is_barrier_measured) = (Some(at), true);
        self.spans.clear();
        step
    }

    /// It crossed at this time.
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
        if self.spans.len() > MOST_SPANS {
            self.forget_a_pause(gap_ms);
        }
    }

    /// The shortest: hardly anything is missing in it.
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
            // Then all that is before a pause is over.
            _ => _ = self.spans.remove(0),
        }
    }

    /// It did not cross at this time: what crossed before ended then.
    fn cut(&mut self, at: i64) {
        (self.barrier, self.is_barrier_measured) = (Some(at), true);
        self.spans.retain(|span| span.to > at);
        if let Some(first) = self.spans.first_mut() {
            if first.from <= at {
                // The first sample behind this is not known, but it was no later than that.
                first.from = at.saturating_add(first.widest).min(first.to);
            } else {
                first.follow(at);
            }
        }
    }

    /// Since when it has crossed until the newest sample of now. None where that is not known to cross.
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

//! The specified behaviour, computed from all samples each time.

use std::collections::BTreeMap;

use super::super::*;

/// The specified behaviour, computed from all samples.
pub struct Reference {
    rule: Rule,
    pub phase: Phase,
    known: BTreeMap<i64, f64>,
    newest: Option<i64>,
    pub is_present: bool,
    /// Samples up to this time do not count.
    barrier: Option<i64>,
}

impl Reference {
    pub fn new(rule: Rule) -> Self {
        Self { rule, phase: Phase::Clear, known: BTreeMap::new(), newest: None, is_present: false, barrier: None }
    }

    pub fn live(&mut self, at: i64, value: f64) -> Step {
        if self.newest == Some(at) {
            return Step::Nothing;
        }
        if self.known.last_key_value().is_some_and(|(newest, _)| at < *newest) {
            let ahead = self.known.split_off(&at);
            self.barrier = self.barrier.map(|barrier| barrier.min(at - 1));
            if !ahead.values().all(|value| self.holds(*value, self.rule.threshold)) {
                self.barrier = Some(at - 1);
            }
        }
        (self.newest, self.is_present) = (Some(at), true);
        self.known.insert(at, value);
        self.decide(false)
    }

    pub fn late(&mut self, at: i64, value: f64) -> Step {
        self.known.entry(at).or_insert(value);
        let tells = self.phase == Phase::Clear && self.holds(value, self.rule.threshold);
        if tells { self.decide(true) } else { Step::Nothing }
    }

    pub fn restart(&mut self) -> Step {
        let Some((&newest, _)) = self.known.last_key_value() else { return Step::Nothing };
        if self.barrier == Some(newest) {
            return Step::Nothing;
        }
        (self.newest, self.is_present) = (Some(newest), true);
        let step = self.decide(false);
        self.is_present = false;
        step
    }

    fn decide(&mut self, by_late: bool) -> Step {
        let Some(newest) = self.newest.filter(|_| self.is_present) else { return Step::Nothing };
        let value = self.known[&newest];
        match self.phase {
            Phase::Clear => {
                let since = self.run(newest, by_late);
                let Some(since) = since.filter(|since| newest - since >= self.rule.duration_ms) else {
                    return Step::Nothing;
                };
                self.phase = Phase::Firing;
                Step::Fires { since }
            }
            phase if self.holds(value, self.rule.clear.unwrap_or(self.rule.threshold)) => {
                if phase == Phase::Firing {
                    Step::GoesOn
                } else {
                    Step::Nothing
                }
            }
            phase => {
                (self.phase, self.barrier) = (Phase::Clear, Some(newest));
                if phase == Phase::Firing { Step::Recovers } else { Step::Rearms }
            }
        }
    }

    fn holds(&self, value: f64, limit: f64) -> bool {
        match self.rule.comparison {
            Comparison::Gt => value > limit,
            Comparison::Gte => value >= limit,
            Comparison::Lt => value < limit,
            Comparison::Lte => value <= limit,
        }
    }

    /// Returns since when all samples up to the newest cross.
    fn run(&self, newest: i64, by_late: bool) -> Option<i64> {
        let times: Vec<i64> = self.known.range(..=newest).map(|(at, _)| *at).collect();
        let gap = (2 * self.rule.duration_ms).max(300_000);
        let mut since = None;
        for index in (0..times.len()).rev() {
            let at = times[index];
            if self.barrier.is_some_and(|barrier| at <= barrier) || !self.holds(self.known[&at], self.rule.threshold) {
                break;
            }
            if let Some(next) = times.get(index + 1) {
                let pause = next - at;
                let before = index.checked_sub(1).map(|before| times[before]);
                let before = before.filter(|before| self.barrier.is_none_or(|barrier| *before >= barrier));
                let usual = before.map_or(gap, |before| (2 * (at - before)).max(15_000));
                let is_open = by_late && *next == newest;
                let adjoins = before.map_or(15_000, |before| (2 * (at - before)).max(15_000));
                if (pause > usual && pause > gap) || (is_open && pause > adjoins) {
                    break;
                }
            }
            since = Some(at);
        }
        since
    }
}

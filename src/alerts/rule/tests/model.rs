//! Compares the state machine with a reference that keeps every sample and computes everything again each time.
//!
//! An agent samples at its interval, misses some, loses its connection, sends late what it could not send, and some of
//! it twice; its clock is moved; the service restarts; people resolve alerts.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::super::*;
use super::reference::Reference;

/// The state machine, with what the service stores of it.
struct Subject {
    rule: Rule,
    state: State,
    kept: BTreeMap<i64, f64>,
    barrier: Option<i64>,
}

impl Subject {
    fn keep(&mut self, step: Step, at: i64) -> Step {
        if matches!(step, Step::Recovers | Step::Rearms) {
            self.barrier = Some(at);
        }
        step
    }

    fn live(&mut self, at: i64, value: f64) -> Step {
        if self.kept.last_key_value().is_some_and(|(newest, _)| at < *newest) {
            // Samples of the future are not replayed.
            let ahead = self.kept.split_off(&at);
            self.barrier = self.barrier.map(|barrier| barrier.min(at - 1));
            if !ahead.values().all(|value| self.rule.crosses(*value)) {
                self.barrier = Some(at - 1);
            }
        }
        self.kept.entry(at).or_insert(value);
        let step = self.state.live(&self.rule, at, value);
        self.keep(step, at)
    }

    fn late(&mut self, at: i64, value: f64) -> Step {
        self.kept.entry(at).or_insert(value);
        self.state.late(&self.rule, at, value)
    }

    fn restart(&mut self) -> Step {
        self.state = State::new(self.state.phase(), self.barrier);
        let Some((&newest, &value)) = self.kept.last_key_value() else { return Step::Nothing };
        for (at, value) in self.kept.range(..newest) {
            assert_eq!(self.state.late(&self.rule, *at, *value), Step::Nothing, "a replay of the past at {at}");
        }
        let step = self.state.live(&self.rule, newest, value);
        self.state.part();
        self.keep(step, newest)
    }
}

#[derive(Debug, Clone)]
enum Action {
    /// This many samples of one level.
    Sample(usize, Level),
    /// The agent measures nothing for this many intervals.
    Miss(i64),
    Disconnect {
        unacknowledged: usize,
    },
    Connect,
    /// The connection breaks for this many samples, of which this many are sent after the next live one.
    Outage(usize, Level, usize),
    /// This many of the waiting samples are sent.
    CatchUp(usize),
    Restart {
        unacknowledged: usize,
    },
    Resolve,
    /// The machine's clock is moved by this many intervals.
    MoveClock(i64),
}

#[derive(Debug, Clone, Copy)]
enum Level {
    Crossing,
    /// Between the threshold and the clear value.
    Between,
    Good,
}

impl Level {
    fn value(self, comparison: Comparison) -> f64 {
        let above = match self {
            Self::Crossing => 5.0,
            Self::Between => -5.0,
            Self::Good => -50.0,
        };
        if comparison.is_upper() { 90.0 + above } else { 90.0 - above }
    }
}

/// The agent and its connection to the service.
struct World {
    subject: Subject,
    reference: Reference,
    interval_ms: i64,
    clock: i64,
    is_connected: bool,
    waiting: VecDeque<(i64, f64)>,
    /// Samples that were sent live, oldest first.
    sent: Vec<(i64, f64)>,
    seen: Vec<(InputKind, Step)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum InputKind {
    Live,
    Late,
    Restart,
}

impl World {
    fn new(rule: Rule, interval_ms: i64) -> Self {
        let subject = Subject { rule, state: State::default(), kept: BTreeMap::new(), barrier: None };
        let reference = Reference::new(rule);
        Self {
            subject,
            reference,
            interval_ms,
            clock: 1_000_000_000,
            is_connected: true,
            waiting: VecDeque::new(),
            sent: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn compare(&mut self, freshness: InputKind, at: i64, [step, expected]: [Step; 2]) {
        self.seen.push((freshness, expected));
        assert_eq!(step, expected, "at {at}");
        assert_eq!(self.subject.state.phase(), self.reference.phase, "at {at}");
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Sample(count, level) => {
                for _ in 0..count {
                    self.clock += self.interval_ms;
                    self.measure(level.value(self.subject.rule.comparison));
                }
            }
            Action::Miss(intervals) => self.clock += intervals * self.interval_ms,
            Action::Disconnect { unacknowledged } => self.disconnect(unacknowledged),
            Action::Connect => self.is_connected = true,
            Action::Outage(count, level, late) => {
                self.disconnect(0);
                self.act(&Action::Sample(count, level));
                self.is_connected = true;
                self.act(&Action::Sample(1, Level::Crossing));
                self.act(&Action::CatchUp(late));
            }
            Action::CatchUp(count) => {
                for _ in 0..count {
                    if let Some((at, value)) = self.waiting.pop_front().filter(|_| self.is_connected) {
                        let steps = [self.subject.late(at, value), self.reference.late(at, value)];
                        self.compare(InputKind::Late, at, steps);
                    }
                }
            }
            Action::Restart { unacknowledged } => {
                self.disconnect(unacknowledged);
                let steps = [self.subject.restart(), self.reference.restart()];
                self.compare(InputKind::Restart, self.clock, steps);
            }
            Action::Resolve => {
                self.subject.state.mute();
                if self.reference.phase == Phase::Firing {
                    self.reference.phase = Phase::Muted;
                }
            }
            // Samples on their way would have times of another clock.
            Action::MoveClock(intervals) if self.is_connected && self.waiting.is_empty() => {
                self.sent.clear();
                self.clock += intervals * self.interval_ms;
                self.measure(Level::Crossing.value(self.subject.rule.comparison));
            }
            Action::MoveClock(_) => {}
        }
    }

    fn measure(&mut self, value: f64) {
        let at = self.clock;
        if !self.is_connected {
            self.waiting.push_back((at, value));
            return;
        }
        self.sent.push((at, value));
        let steps = [self.subject.live(at, value), self.reference.live(at, value)];
        self.compare(InputKind::Live, at, steps);
    }

    /// Sends again, in their place, the samples that were not acknowledged.
    fn disconnect(&mut self, unacknowledged: usize) {
        if !std::mem::replace(&mut self.is_connected, false) {
            return;
        }
        self.subject.state.part();
        self.reference.is_present = false;
        let from = self.sent.len().saturating_sub(unacknowledged);
        self.waiting.extend(self.sent.drain(from..));
        self.waiting.make_contiguous().sort_by_key(|(at, _)| *at);
        self.sent.clear();
    }
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![6 => Just(Level::Crossing), 1 => Just(Level::Between), 1 => Just(Level::Good)]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => (1_usize..12, level()).prop_map(|(count, level)| Action::Sample(count, level)),
        2 => (1_i64..80).prop_map(Action::Miss),
        3 => (0_usize..4).prop_map(|unacknowledged| Action::Disconnect { unacknowledged }),
        5 => Just(Action::Connect),
        4 => (1_usize..30).prop_map(Action::CatchUp),
        4 => (1_usize..20, level(), 0_usize..80).prop_map(|(count, level, late)| Action::Outage(count, level, late)),
        2 => (0_usize..4).prop_map(|unacknowledged| Action::Restart { unacknowledged }),
        1 => Just(Action::Resolve),
        1 => (-30_i64..30).prop_map(Action::MoveClock),
    ]
}

fn comparison() -> impl Strategy<Value = Comparison> {
    proptest::sample::select(Comparison::ALL)
}

prop_compose! {
    fn rule()(
        comparison in comparison(),
        has_clear in any::<bool>(),
        duration_s in proptest::sample::select(vec![0, 5, 30, 60, 300, 600]),
    ) -> Rule {
        let clear = if comparison.is_upper() { 80.0 } else { 100.0 };
        Rule { comparison, threshold: 90.0, clear: has_clear.then_some(clear), duration_ms: duration_s * 1000 }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn alerts_are_those_of_the_reference(
        rule in rule(),
        interval_s in proptest::sample::select(vec![5_i64, 10, 60, 300]),
        actions in proptest::collection::vec(action(), 1..60),
    ) {
        let mut world = World::new(rule, interval_s * 1000);

        actions.iter().for_each(|action| world.act(action));
    }
}

proptest! {
    /// Times in any order, unlike an agent's, must not cause a false alert either.
    #[test]
    fn nothing_fires_that_has_not_crossed_throughout(
        rule in rule(),
        told in proptest::collection::vec((any::<bool>(), 0_i64..120, level()), 1..80),
    ) {
        let mut state = State::default();
        let mut known = BTreeMap::new();
        for (is_live, place, level) in told {
            let (at, value) = (place * 5_000, level.value(rule.comparison));
            if is_live {
                known.split_off(&(at + 1));
            }
            let value = *known.entry(at).or_insert(value);
            let step = if is_live { state.live(&rule, at, value) } else { state.late(&rule, at, value) };
            if let Step::Fires { since } = step {
                let newest = state.newest.unwrap();
                prop_assert!(newest - since >= rule.duration_ms);
                prop_assert!(known.range(since..=newest).all(|(_, value)| rule.crosses(*value)), "{since} {newest}");
            }
        }
    }
}

#[test]
fn the_sequences_cause_every_step() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let rule = Rule { comparison: Comparison::Gt, threshold: 90.0, clear: Some(80.0), duration_ms: 30_000 };
    let mut seen = Vec::new();
    for _ in 0..200 {
        let actions = proptest::collection::vec(action(), 60).new_tree(&mut runner).unwrap().current();
        let mut world = World::new(rule, 5_000);
        actions.iter().for_each(|action| world.act(action));
        seen.extend(world.seen);
    }

    let count =
        |freshness, is_it: fn(&Step) -> bool| seen.iter().filter(|(l, step)| *l == freshness && is_it(step)).count();
    let is_fired: fn(&Step) -> bool = |step| matches!(step, Step::Fires { .. });
    let counts = [
        count(InputKind::Live, is_fired),
        count(InputKind::Late, is_fired),
        count(InputKind::Live, |step| *step == Step::Recovers),
        count(InputKind::Live, |step| *step == Step::Rearms),
        count(InputKind::Restart, |step| *step == Step::GoesOn),
        count(InputKind::Restart, |step| *step == Step::Nothing),
    ];
    assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
}

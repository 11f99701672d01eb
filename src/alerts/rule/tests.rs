use super::*;

mod model;
mod reference;
mod table;

const SECOND: i64 = 1000;

fn rule(duration_s: i64) -> Rule {
    Rule { comparison: Comparison::Gt, threshold: 90.0, clear: None, duration_ms: duration_s * SECOND }
}

/// A state and its rule, with times in seconds.
struct TestRule {
    rule: Rule,
    state: State,
}

impl TestRule {
    fn new(rule: Rule) -> Self {
        Self { rule, state: State::default() }
    }

    fn live(&mut self, seconds: i64, value: f64) -> Step {
        self.state.live(&self.rule, seconds * SECOND, value)
    }

    fn late(&mut self, seconds: i64, value: f64) -> Step {
        self.state.late(&self.rule, seconds * SECOND, value)
    }

    /// Takes in the value every five seconds from the first to the last, and asserts that it has no effect.
    fn quietly(&mut self, tell: fn(&mut Self, i64, f64) -> Step, seconds: std::ops::RangeInclusive<i64>, value: f64) {
        for at in seconds.step_by(5) {
            assert_eq!(tell(self, at, value), Step::Nothing, "{at}");
        }
    }
}

fn fires(since_s: i64) -> Step {
    Step::Fires { since: since_s * SECOND }
}

#[test]
fn two_samples_one_duration_apart_fire() {
    for duration in [60, 300, 3600] {
        let mut told = TestRule::new(rule(duration));

        assert_eq!(told.live(0, 95.0), Step::Nothing);
        assert_eq!(told.live(duration, 95.0), fires(0), "{duration}");
    }
}

#[test]
fn an_agent_with_a_long_interval_fires_at_its_second_crossing_sample() {
    let mut told = TestRule::new(rule(60));

    assert_eq!(told.live(0, 10.0), Step::Nothing);
    assert_eq!(told.live(3600, 95.0), Step::Nothing);
    assert_eq!(told.live(7200, 95.0), fires(3600));
}

#[test]
fn late_samples_show_how_long_it_has_crossed() {
    let mut told = TestRule::new(rule(300));
    told.quietly(TestRule::live, 0..=20, 10.0);
    told.quietly(TestRule::live, 400..=410, 95.0);
    told.quietly(TestRule::late, 25..=50, 10.0);

    // It has crossed for the last 5 min, without a pause once all samples have arrived.
    told.quietly(TestRule::late, 55..=105, 10.0);
    assert_eq!(told.late(110, 95.0), fires(110));
}

#[test]
fn no_data_is_no_recovery() {
    let mut told = TestRule::new(rule(60));
    told.quietly(TestRule::live, 0..=50, 95.0);

    assert_eq!(told.live(200, 95.0), fires(0));
}

#[test]
fn a_gap_that_is_too_long_breaks_the_run() {
    let mut told = TestRule::new(rule(60));
    told.quietly(TestRule::live, 0..=50, 95.0);

    assert_eq!(told.live(351, 95.0), Step::Nothing);
    told.quietly(TestRule::live, 356..=406, 95.0);
    assert_eq!(told.live(411, 95.0), fires(351));
}

#[test]
fn late_samples_fire_nothing_before_the_last_of_them_has_arrived() {
    let mut told = TestRule::new(rule(60));
    told.quietly(TestRule::live, 200..=200, 95.0);

    told.quietly(TestRule::late, 0..=180, 95.0);

    assert_eq!(told.late(185, 95.0), fires(0));
}

#[test]
fn a_recovery_among_late_samples_ends_the_run_before_it() {
    let mut told = TestRule::new(rule(300));
    told.quietly(TestRule::live, 0..=50, 95.0);
    told.quietly(TestRule::live, 200..=200, 95.0);
    told.quietly(TestRule::late, 55..=170, 95.0);

    assert_eq!(told.late(175, 10.0), Step::Nothing);

    told.quietly(TestRule::late, 180..=195, 95.0);
    told.quietly(TestRule::live, 205..=475, 95.0);
    assert_eq!(told.live(480, 95.0), fires(180));
}

#[test]
fn a_backfill_fires_nothing_about_the_past() {
    let mut told = TestRule::new(rule(60));
    told.quietly(TestRule::live, 0..=0, 10.0);
    told.quietly(TestRule::live, 1000..=1000, 10.0);

    told.quietly(TestRule::late, 5..=995, 95.0);

    told.quietly(TestRule::live, 1005..=1060, 95.0);
    assert_eq!(told.live(1065, 95.0), fires(1005));
}

#[test]
fn a_firing_rule_ignores_late_samples() {
    let mut told = TestRule::new(rule(0));
    assert_eq!(told.live(0, 95.0), fires(0));
    assert_eq!(told.live(100, 95.0), Step::GoesOn);

    told.quietly(TestRule::late, 5..=95, 10.0);

    assert_eq!(told.state.phase(), Phase::Firing);
    assert_eq!(told.live(105, 10.0), Step::Recovers);
}

#[test]
fn samples_before_a_recovery_never_count_again() {
    let mut told = TestRule::new(rule(60));
    told.quietly(TestRule::live, 0..=55, 95.0);
    assert_eq!(told.live(60, 95.0), fires(0));
    assert_eq!(told.live(65, 10.0), Step::Recovers);

    told.quietly(TestRule::live, 70..=75, 95.0);
    told.quietly(TestRule::late, 0..=65, 95.0);

    assert_eq!(told.live(80, 95.0), Step::Nothing);
}

#[test]
fn after_being_resolved_by_hand_it_fires_again_only_once_recovered() {
    let mut told = TestRule::new(rule(0));
    assert_eq!(told.live(0, 95.0), fires(0));
    told.state.mute();

    assert_eq!(told.live(5, 99.0), Step::Nothing);
    assert_eq!(told.live(10, 10.0), Step::Rearms);
    assert_eq!(told.live(15, 95.0), fires(15));
}

#[test]
fn a_recovered_rule_is_not_muted() {
    let mut told = TestRule::new(rule(0));
    told.live(0, 95.0);
    told.live(5, 10.0);

    told.state.mute();

    assert_eq!(told.live(10, 95.0), fires(10));
}

#[test]
fn a_sample_that_arrives_twice_counts_once() {
    let mut told = TestRule::new(rule(5));

    assert_eq!(told.live(0, 95.0), Step::Nothing);
    assert_eq!(told.live(0, 10.0), Step::Nothing);
    assert_eq!(told.late(0, 10.0), Step::Nothing);
    assert_eq!(told.live(5, 95.0), fires(0));
    assert_eq!(told.live(5, 10.0), Step::Nothing);
}

#[test]
fn a_clock_that_is_set_back_a_little_does_not_end_a_run() {
    let mut told = TestRule::new(rule(60));
    told.quietly(TestRule::live, 0..=40, 95.0);

    told.quietly(TestRule::live, 38..=58, 95.0);

    assert_eq!(told.live(63, 95.0), fires(0));
}

#[test]
fn a_clock_that_was_far_ahead_is_forgotten() {
    let mut told = TestRule::new(rule(60));
    told.quietly(TestRule::live, 10_000..=10_050, 95.0);

    told.quietly(TestRule::live, 100..=155, 95.0);

    assert_eq!(told.live(160, 95.0), fires(100));
}

#[test]
fn after_a_recovery_by_a_clock_that_was_ahead_only_later_samples_count() {
    let mut told = TestRule::new(rule(10));
    told.quietly(TestRule::live, 0..=5, 95.0);
    told.quietly(TestRule::live, 1_000..=1_000, 10.0);

    told.quietly(TestRule::live, 10..=15, 95.0);
    told.quietly(TestRule::late, 0..=5, 95.0);

    assert_eq!(told.live(20, 95.0), fires(10));
}

#[test]
fn while_the_agent_is_away_nothing_fires() {
    let mut told = TestRule::new(rule(103));
    told.quietly(TestRule::live, 0..=5, 95.0);
    told.quietly(TestRule::live, 100..=100, 95.0);
    told.state.part();

    told.quietly(TestRule::late, 10..=95, 95.0);

    assert_eq!(told.live(105, 95.0), fires(0));
}

#[test]
fn a_restart_does_not_change_the_state() {
    let mut told = TestRule::new(rule(60));
    told.state = State::new(Phase::Clear, None);
    told.quietly(TestRule::late, 0..=45, 95.0);
    told.quietly(TestRule::live, 50..=50, 95.0);
    told.state.part();

    told.quietly(TestRule::live, 55..=55, 95.0);
    assert_eq!(told.live(60, 95.0), fires(0));
}

#[test]
fn samples_before_the_barrier_do_not_count() {
    let mut told = TestRule::new(rule(60));
    told.state = State::new(Phase::Clear, Some(30 * SECOND));
    told.quietly(TestRule::late, 0..=55, 95.0);

    told.quietly(TestRule::live, 60..=90, 95.0);
    assert_eq!(told.live(95, 95.0), fires(35));
}

#[test]
fn samples_of_a_clock_behind_the_barrier_still_count() {
    let mut told = TestRule::new(rule(10));
    told.state = State::new(Phase::Clear, Some(3_600 * SECOND));

    told.quietly(TestRule::live, 0..=5, 95.0);
    assert_eq!(told.live(10, 95.0), fires(0));
}

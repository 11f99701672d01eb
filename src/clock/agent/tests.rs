use proptest::prelude::*;

use super::*;

const START_MS: i64 = 1_795_000_000_000;
const DAY_MS: i64 = 24 * 3_600_000;

/// A service with a right clock, and an agent that sends periodically.
struct Line {
    boot_ms: i64,
    agent_off_ms: i64,
    says: bool,
    clock: AgentClock,
}

impl Line {
    fn new(off_ms: i64) -> Self {
        let clock = AgentClock::new(Some(START_MS + off_ms), START_MS, 0);
        Self { boot_ms: 0, agent_off_ms: off_ms, says: true, clock }
    }

    /// An agent that does not report when it sends.
    fn silent() -> Self {
        Self { boot_ms: 0, agent_off_ms: 0, says: false, clock: AgentClock::new(None, START_MS, 0) }
    }

    fn wall_ms(&self) -> i64 {
        START_MS + self.boot_ms
    }

    /// Sends a message now that arrives later; no other time passes.
    fn send(&mut self, delay_ms: i64) {
        let at = self.wall_ms() + self.agent_off_ms;
        let said = if self.says { Said::SentAt(at) } else { Said::TakenAt(at) };
        self.boot_ms += delay_ms;
        self.clock.heard(said, self.boot_ms);
    }

    fn run(&mut self, messages: usize, every_ms: i64) {
        for _ in 0..messages {
            self.boot_ms += every_ms - 20;
            self.send(20);
        }
    }

    fn offset_ms(&self) -> Option<i64> {
        self.clock.offset_ms(self.wall_ms(), self.boot_ms)
    }

    #[track_caller]
    fn expect(&self, off_ms: i64) {
        let offset_ms = self.offset_ms().unwrap();
        assert!((offset_ms - off_ms).abs() <= 1_000, "{offset_ms} instead of {off_ms}");
    }
}

#[test]
fn steps_of_any_size_are_followed_within_a_minute() {
    const SIZES: [i64; 6] = [6_000, 60_000, 7_200_000, 2 * DAY_MS, 365 * DAY_MS, 30 * 365 * DAY_MS];
    for (size, says) in SIZES.into_iter().flat_map(|size| [(size, true), (size, false)]) {
        for step in [size, -size] {
            let mut line = if says { Line::new(0) } else { Line::silent() };
            line.run(20, 5_000);

            line.agent_off_ms += step;
            line.run(4, 5_000);

            line.expect(step);
        }
    }
}

#[test]
fn a_clock_set_back_by_more_than_a_pause_between_messages_is_known_at_once() {
    let mut line = Line::new(7_200_000);
    line.run(20, 5_000);

    line.agent_off_ms = 0;
    line.run(1, 5_000);

    line.expect(0);
}

#[test]
fn drift_over_months_is_followed() {
    for drift_per_minute in [-6, 6] {
        let mut line = Line::new(0);
        for _ in 0..180 * 24 * 60 {
            line.agent_off_ms += drift_per_minute;
            line.run(1, 60_000);
        }

        assert!(line.agent_off_ms.abs() > 20 * 60_000, "that is 100 ppm");
        line.expect(line.agent_off_ms);
    }
}

#[test]
fn a_message_that_was_held_up_is_no_change() {
    let mut line = Line::new(0);
    line.run(20, 5_000);

    line.send(40_000);

    line.expect(0);
}

#[test]
fn messages_left_unread_for_minutes_are_no_change() {
    for every_ms in [500, 1_000, 5_000] {
        let mut line = Line::new(0);
        line.run(20, every_ms);
        let sent_from = line.wall_ms();
        line.boot_ms += 120_000;

        for sent in 0..120_000 / every_ms {
            line.clock.heard(Said::SentAt(sent_from + sent * every_ms), line.boot_ms + sent / 20);
            line.expect(0);
        }
    }
}

#[test]
fn a_catch_up_in_order_is_no_change() {
    let mut line = Line::silent();
    for taken in 0..2_000 {
        line.boot_ms += 10;
        line.clock.heard(Said::TakenAt(START_MS - DAY_MS + taken * 5_000), line.boot_ms);
    }

    assert_eq!(line.offset_ms(), None);
    assert_eq!(line.clock.now_ms(line.boot_ms), line.wall_ms());
}

#[test]
fn a_sample_from_the_future_says_nothing_about_its_senders_clock() {
    let mut line = Line::new(0);
    line.run(3, 5_000);

    line.clock.heard(Said::TakenAt(line.wall_ms() + DAY_MS), line.boot_ms);

    line.expect(0);
}

#[test]
fn setting_this_machines_clock_changes_the_offset_and_not_the_agents_time() {
    let mut line = Line::new(0);
    line.run(20, 5_000);

    let wrong_ms = line.wall_ms() + 7_200_000;

    assert_eq!(line.clock.offset_ms(wrong_ms, line.boot_ms), line.offset_ms().map(|offset| offset - 7_200_000));
    line.expect(0);
}

#[test]
fn a_clock_that_hovers_around_a_bound_goes_wrong_once() {
    let mut was_wrong = false;
    let told = [0, 4_900, 5_100, 4_900, 5_100, 2_600, -2_600, 2_500, 4_900].map(|offset_ms| {
        was_wrong = is_wrong(was_wrong, offset_ms);
        was_wrong
    });

    assert_eq!(told, [false, false, true, true, true, true, true, false, false]);
}

proptest! {
    /// However messages are delayed, a clock that was not set never appears further off than the delay.
    #[test]
    fn delays_alone_are_never_notable(delays in prop::collection::vec(0_i64..4_000, 1..200), every_ms in 500_i64..60_000) {
        let mut line = Line::new(0);
        for delay_ms in delays {
            line.boot_ms += every_ms;
            line.send(delay_ms);
            let offset_ms = line.offset_ms().unwrap_or_default();
            prop_assert!((-NOTABLE_MS..=0).contains(&offset_ms), "{}", offset_ms);
        }
    }

    /// Wherever the clock went, it is known a minute after its last step.
    #[test]
    fn the_clock_is_found_wherever_it_went(steps in prop::collection::vec((-400 * DAY_MS..400 * DAY_MS, 0_usize..20), 1..10)) {
        let mut line = Line::new(0);
        for (step, messages) in steps {
            line.agent_off_ms += step;
            line.run(messages, 5_000);
        }
        line.run(12, 5_000);

        let offset_ms = line.offset_ms().unwrap_or_default();
        prop_assert!((offset_ms - line.agent_off_ms).abs() <= 1_000);
    }
}

use serde_json::json;

use super::*;

const ALL: Watch<'static> = Watch { pattern: None, troubles: None, deaths_for_loop: 3.0 };
const LOOPS: Watch<'static> = Watch { troubles: Some(&[Trouble::RestartLoop]), ..ALL };
const STOPPED: Watch<'static> = Watch { troubles: Some(&[Trouble::Stopped]), ..ALL };

/// A server's containers, with times in seconds.
#[derive(Default)]
struct TestContainers {
    containers: Containers,
}

impl TestContainers {
    fn event(&mut self, seconds: i64, mut fields: Value) -> bool {
        fields["timestamp"] = Timestamp::from_millis(seconds * 1000).to_string().into();
        self.containers.told(&serde_json::from_value(fields).unwrap())
    }

    /// Lists containers as `name state health`, each with its name as its id.
    fn list(&mut self, seconds: i64, containers: &[&str]) {
        let entries = containers.iter().map(|container| {
            let words: Vec<&str> = container.split(' ').collect();
            let health = words.get(2).copied();
            let exit_code = (words[1] == "exited").then_some(137);
            json!({"id": words[0], "name": words[0], "state": words[1], "health": health, "exit_code": exit_code})
        });
        let entries: Vec<Value> = entries.collect();
        assert!(self.event(seconds, json!({"kind": "containers", "containers": entries})));
    }

    fn happens(&mut self, seconds: i64, action: &str) {
        let event = json!({"kind": "container", "action": action, "container_id": "db", "name": "db", "exit_code": 1});
        assert!(self.event(seconds, event));
    }

    fn standing(&self, seconds: i64, watch: &Watch<'_>) -> Standing {
        self.containers.standing(seconds * 1000, "db", watch)
    }
}

fn trouble(trouble: Trouble, value: f64, exit_code: Option<i64>) -> Standing {
    Standing::Trouble { trouble, value, exit_code }
}

fn stopped(exit_code: i64) -> Standing {
    trouble(Trouble::Stopped, 1.0, Some(exit_code))
}

fn looping(deaths: f64) -> Standing {
    trouble(Trouble::RestartLoop, deaths, Some(1))
}

#[test]
fn the_list_shows_which_containers_are_in_trouble() {
    let mut told = TestContainers::default();

    told.list(
        0,
        &[
            "created created",
            "dead dead",
            "exited exited",
            "paused paused",
            "restarting restarting",
            "running running",
            "sick running unhealthy",
            "starting running starting",
        ],
    );

    let standings =
        told.containers.standings(0, &Watch { troubles: Some(&[Trouble::Stopped, Trouble::Unhealthy]), ..ALL });
    let expected = [
        ("created", Standing::Well),
        ("dead", trouble(Trouble::Stopped, 1.0, None)),
        ("exited", stopped(137)),
        ("paused", Standing::Well),
        ("restarting", Standing::Well),
        ("running", Standing::Well),
        ("sick", trouble(Trouble::Unhealthy, 1.0, None)),
        ("starting", Standing::Well),
    ];
    assert_eq!(standings, expected);
}

#[test]
fn only_the_pattern_and_the_troubles_of_a_threshold_count() {
    let mut told = TestContainers::default();
    told.list(0, &["web-1 exited", "web-2 running unhealthy", "db exited"]);

    let watch = Watch { pattern: Some("web-*"), ..STOPPED };

    assert_eq!(told.containers.standings(0, &watch), [("web-1", stopped(137)), ("web-2", Standing::Well)]);
}

#[test]
fn an_unreported_container_is_unknown_and_a_removed_one_is_well() {
    let mut told = TestContainers::default();
    assert_eq!(told.standing(0, &STOPPED), Standing::Unknown);

    told.list(1, &["web running"]);
    assert_eq!(told.standing(1, &STOPPED), Standing::Well);

    told.list(2, &["db exited"]);
    assert_eq!(told.standing(2, &STOPPED), stopped(137));

    told.happens(3, "destroy");
    assert_eq!(told.standing(3, &STOPPED), Standing::Well);
}

#[test]
fn while_the_agent_is_away_no_container_is_well() {
    let mut told = TestContainers::default();
    told.list(0, &["db exited", "web running"]);

    told.containers.part();

    assert_eq!(told.containers.standings(1_000, &ALL), [("db", Standing::Unknown), ("web", Standing::Unknown)]);
    assert_eq!(told.containers.standing(1_000, "gone", &ALL), Standing::Unknown);
}

#[test]
fn a_death_counts_as_stopped_when_no_other_event_follows() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);

    told.happens(10, "die");
    assert_eq!(told.standing(10, &STOPPED), Standing::Unknown);
    assert_eq!(told.standing(13, &STOPPED), stopped(1));

    told.list(14, &["db restarting"]);
    assert_eq!(told.standing(20, &STOPPED), Standing::Well, "the engine starts it again");
}

#[test]
fn an_older_list_does_not_undo_an_event() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);
    told.happens(10, "die");

    told.list(9, &["db running"]);

    assert_eq!(told.standing(13, &STOPPED), stopped(1));
}

#[test]
fn a_list_after_a_clock_correction_counts() {
    let mut told = TestContainers::default();
    told.list(10_000, &["db exited"]);

    told.list(100, &["db running"]);

    assert_eq!(told.standing(100, &STOPPED), Standing::Well);
}

#[test]
fn enough_deaths_within_five_minutes_are_a_loop() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);
    for seconds in [400, 500, 600] {
        told.happens(seconds, "die");
        told.happens(seconds + 1, "start");
        let expected = if seconds == 600 { looping(3.0) } else { Standing::Well };
        assert_eq!(told.standing(seconds + 1, &LOOPS), expected, "{seconds}");
    }

    assert_eq!(told.standing(699, &LOOPS), looping(3.0));
    assert_eq!(told.standing(700, &LOOPS), Standing::Well, "the first was five minutes ago");
}

#[test]
fn a_restart_loop_ranks_before_the_momentary_state() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);
    for seconds in [1, 2, 3] {
        told.happens(seconds, "die");
    }

    assert_eq!(told.standing(10, &ALL), looping(3.0));
    assert_eq!(told.standing(10, &STOPPED), stopped(1));
}

#[test]
fn requested_deaths_do_not_count() {
    // As engines report `stop`, `restart` (with and without its stop), and a stop that is reported first.
    for actions in [
        &["die", "stop", "start"][..],
        &["die", "stop", "start", "restart"],
        &["die", "start", "restart"],
        &["stop", "die", "start"],
    ] {
        let mut told = TestContainers::default();
        told.list(0, &["db running"]);
        for round in 1..=5 {
            actions.iter().for_each(|action| told.happens(round * 20, action));
        }

        assert!(!matches!(told.standing(101, &LOOPS), Standing::Trouble { .. }), "{actions:?}");
    }
}

#[test]
fn a_death_that_the_agent_reports_as_requested_does_not_count() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);
    for seconds in 1..=5 {
        let event = json!({
            "kind": "container", "action": "die", "container_id": "db", "name": "db", "requested": true,
        });
        assert!(told.event(seconds, event));
        told.happens(seconds, "start");
    }

    assert_eq!(told.standing(6, &LOOPS), Standing::Unproven);
}

#[test]
fn a_stop_removes_only_its_own_death() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);
    for seconds in [10, 20, 30] {
        told.happens(seconds, "die");
        told.happens(seconds, "start");
    }

    for action in ["die", "stop", "start", "restart"] {
        told.happens(40, action);
    }

    assert_eq!(told.standing(41, &LOOPS), looping(3.0));
}

#[test]
fn a_crash_soon_after_a_manual_start_counts() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);
    for (seconds, action) in [(1, "stop"), (1, "start"), (2, "die"), (3, "start"), (4, "die"), (5, "start"), (6, "die")]
    {
        told.happens(seconds, action);
    }

    assert_eq!(told.standing(7, &LOOPS), looping(3.0));
}

#[test]
fn no_loop_ends_before_five_minutes_of_observation() {
    let mut told = TestContainers::default();
    told.list(1_000, &["db running"]);

    assert_eq!(told.standing(1_299, &LOOPS), Standing::Unproven);
    assert_eq!(told.standing(1_299, &STOPPED), Standing::Well, "but it does run");
    assert_eq!(told.standing(1_300, &LOOPS), Standing::Well);

    told.containers.part();
    told.list(1_400, &["db running"]);
    assert_eq!(told.standing(1_699, &LOOPS), Standing::Unproven, "nor after a connection that broke");
    assert_eq!(told.standing(1_700, &LOOPS), Standing::Well);
}

#[test]
fn a_list_of_before_does_not_prove_that_a_loop_has_ended() {
    let mut told = TestContainers::default();
    let list = json!({"kind": "containers", "timestamp": Timestamp::from_millis(0).to_string(),
        "containers": [{"id": "db", "name": "db", "state": "running"}]});

    assert!(told.containers.recall(&serde_json::from_value(list).unwrap(), 1_000_000));

    assert_eq!(told.standing(1_299, &LOOPS), Standing::Unproven);
    assert_eq!(told.standing(1_300, &LOOPS), Standing::Well);
}

#[test]
fn deaths_outlive_the_connection() {
    let mut told = TestContainers::default();
    told.list(0, &["db running"]);
    told.happens(10, "die");
    told.happens(20, "die");
    told.containers.part();
    told.list(30, &["db running"]);

    told.happens(40, "die");

    assert_eq!(told.standing(41, &LOOPS), looping(3.0));
}

#[test]
fn a_new_container_of_the_same_name_is_another() {
    let mut told = TestContainers::default();
    told.list(0, &["db exited"]);

    let entry = json!({"id": "other", "name": "db", "state": "running", "health": null, "exit_code": null});
    told.event(1, json!({"kind": "containers", "containers": [entry]}));

    assert_eq!(told.standing(1, &STOPPED), Standing::Well);
}

#[test]
fn a_name_of_two_containers_has_the_worse_standing() {
    let mut told = TestContainers::default();
    told.list(0, &["db exited"]);

    assert!(told.event(1, json!({"kind": "container", "action": "rename", "container_id": "other", "name": "db"})));

    assert_eq!(told.containers.standings(1_000, &STOPPED), [("db", stopped(137))]);
    assert_eq!(told.standing(1, &STOPPED), stopped(137));
}

#[test]
fn renames_and_health_changes_are_applied() {
    let mut told = TestContainers::default();
    told.list(0, &["old running"]);

    for (action, health) in [("rename", Value::Null), ("health_status", "unhealthy".into())] {
        let event =
            json!({"kind": "container", "action": action, "container_id": "old", "name": "db", "health": health});
        assert!(told.event(1, event));
    }

    assert_eq!(told.containers.standings(1_000, &ALL), [("db", trouble(Trouble::Unhealthy, 1.0, None))]);
    told.happens(2, "start");
    assert_eq!(told.containers.standing(2_000, "old", &STOPPED), Standing::Well);
}

#[test]
fn invalid_events_are_ignored() {
    let mut told = TestContainers::default();
    let long = "x".repeat(257);

    for nonsense in [
        json!({"kind": "policy"}),
        json!({"kind": "containers"}),
        json!({"kind": "containers", "containers": "all"}),
        json!({"kind": "container", "action": "die"}),
        json!({"kind": "container", "action": 5, "container_id": "db", "name": "db"}),
        json!({"kind": "container", "action": "die", "container_id": "", "name": "db"}),
        json!({"kind": "container", "action": "die", "container_id": long, "name": "db"}),
        json!({"kind": "container", "action": "die", "container_id": "db"}),
    ] {
        assert!(!told.event(1, nonsense.clone()), "{nonsense}");
    }
    let no_time = json!({"kind": "container", "action": "die", "container_id": "db", "name": "db", "timestamp": "now"});
    assert!(!told.containers.told(&serde_json::from_value(no_time).unwrap()));

    let odd = json!([1, null, {"id": "db"}, {"id": "db", "name": ["db"]}, {"id": "web", "name": "web", "state": 7}]);
    assert!(told.event(1, json!({"kind": "containers", "containers": odd})));
    assert_eq!(told.containers.standings(1_000, &STOPPED), [("web", Standing::Well)]);
}

#[test]
fn memory_is_bounded() {
    let mut told = TestContainers::default();
    let many: Vec<String> = (0..1_100).map(|number| format!("c{number:04} running")).collect();
    told.list(0, &many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(told.containers.by_id.len(), MAX_CONTAINERS);

    let one_more = json!({"kind": "container", "action": "start", "container_id": "x", "name": "x"});
    assert!(!told.event(1, one_more));
    assert_eq!(told.containers.by_id.len(), MAX_CONTAINERS);

    for seconds in 0..200 {
        let event = json!({"kind": "container", "action": "die", "container_id": "c0000", "name": "c0000"});
        told.event(seconds, event);
    }
    assert_eq!(told.containers.by_id["c0000"].deaths.len(), MAX_DEATHS);
}

use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    Timestamp::from_millis(1_795_273_684_000)
}

fn later() -> Timestamp {
    now().plus_millis(1_000)
}

fn list(containers: Value) -> List {
    List { asked_at: now(), containers: serde_json::from_value(containers).unwrap(), is_whole: true }
}

fn state(name: &str, state: &str, health: Option<&str>, exit_code: Option<i64>) -> ContainerState {
    ContainerState {
        id: format!("id-{name}"),
        name: name.to_owned(),
        state: state.to_owned(),
        health: health.map(str::to_owned),
        exit_code,
    }
}

fn happened(action: &str, attributes: Value) -> ContainerEvent {
    let event = json!({
        "Type": "container", "Action": action, "Actor": {"ID": "id-web", "Attributes": attributes},
        "timeNano": later().as_millis() * 1_000_000,
    });
    ContainerEvent::of(serde_json::from_value(event).unwrap()).unwrap()
}

fn health(word: &str) -> ContainerEvent {
    happened("health_status", json!({"health_status": word}))
}

/// An entry of an engine's list, as far as it is read.
fn entry(name: &str, state: &str, status: &str) -> Value {
    json!({
        "Id": format!("id-{name}"), "Names": [format!("/{name}")], "Image": "busybox", "ImageID": "sha256:bd",
        "Command": "sh", "Created": 1_795_273_000, "Ports": [], "Labels": {}, "State": state, "Status": status,
        "HostConfig": {"NetworkMode": "none"}, "NetworkSettings": {"Networks": {}}, "Mounts": [],
    })
}

#[test]
fn dockers_list_has_every_state() {
    let entries = json!([
        entry("looping", "restarting", "Restarting (1) 2 seconds ago"),
        entry("fresh", "running", "Up Less than a second (health: starting)"),
        entry("well", "running", "Up 3 seconds (healthy)"),
        entry("sick", "running", "Up 2 days (unhealthy)"),
        entry("plain", "running", "Up 16 seconds"),
        entry("held", "paused", "Up Less than a second (Paused)"),
        entry("new", "created", "Created"),
        entry("killed", "exited", "Exited (137) 51 seconds ago"),
        entry("going", "removing", "Removal In Progress"),
        entry("lost", "dead", "Dead"),
    ]);

    let told = States::default().listed(list(entries));

    let expected = vec![
        state("fresh", "running", Some("starting"), None),
        state("going", "removing", None, None),
        state("held", "paused", None, None),
        state("killed", "exited", None, Some(137)),
        state("looping", "restarting", None, None),
        state("lost", "dead", None, None),
        state("new", "created", None, None),
        state("plain", "running", None, None),
        state("sick", "running", Some("unhealthy"), None),
        state("well", "running", Some("healthy"), None),
    ];
    assert_eq!(told, ContainerStates { timestamp: now(), containers: expected, truncated: false });
}

#[test]
fn podman_has_words_of_its_own_and_nulls() {
    let entries = json!([
        {
            "Id": "id-r", "Names": ["/r"], "Image": "docker.io/library/busybox:test", "ImageID": "sha256:34",
            "Command": "sh -c exit 1", "Created": 1_795_284_816, "Ports": [], "Labels": {}, "State": "stopped",
            "Status": "Exited (1) Less than a second ago", "NetworkSettings": {"Networks": null}, "Mounts": [],
            "Name": "", "Config": null, "NetworkingConfig": null, "Platform": null, "AdjustCPUShares": false,
        },
        {"Id": "id-a", "Names": ["/a"], "Ports": null, "Labels": null, "State": "initialized", "Status": "Created"},
        entry("b", "stopping", "Up 2 minutes (healthy)"),
    ]);

    let told = States::default().listed(list(entries));

    let expected = vec![
        state("a", "created", None, None),
        state("b", "running", Some("healthy"), None),
        state("r", "exited", None, Some(1)),
    ];
    assert_eq!(told.containers, expected);
}

#[test]
fn health_that_no_list_has_is_remembered_while_the_container_runs() {
    let web = |status| list(json!([entry("web", if status == "Up" { "running" } else { "exited" }, status)]));
    let mut states = States::default();
    assert_eq!(states.after(&health("unhealthy")), None, "the rest is not known yet");
    let unhealthy = vec![state("web", "running", Some("unhealthy"), None)];
    assert_eq!(states.listed(web("Up")).containers, unhealthy);

    let told = states.after(&health("healthy")).unwrap();

    let healthy = vec![state("web", "running", Some("healthy"), None)];
    assert_eq!(told, ContainerStates { timestamp: later(), containers: healthy.clone(), truncated: false });
    assert_eq!(states.after(&health("healthy")), None, "as before");
    assert_eq!(states.after(&health("nonsense")), None);
    assert_eq!(states.listed(web("Up")).containers, healthy);
    assert_eq!(states.listed(web("Exited (0)")).containers, vec![state("web", "exited", None, Some(0))]);
    assert_eq!(states.listed(web("Up")).containers, vec![state("web", "running", None, None)]);
}

#[test]
fn a_new_run_has_no_health_yet() {
    let mut states = States::default();
    states.after(&health("unhealthy"));

    states.after(&happened("start", json!({})));

    let entries = json!([entry("web", "running", "Up 1 second")]);
    assert_eq!(states.listed(list(entries)).containers, vec![state("web", "running", None, None)]);
}

#[test]
fn health_is_not_reported_while_a_list_is_awaited() {
    let mut states = States::default();
    states.listed(list(json!([entry("web", "running", "Up 1 second")])));

    states.outdate();

    assert_eq!(states.after(&health("unhealthy")), None);
}

#[test]
fn of_too_many_containers_the_running_ones_are_reported() {
    let done = (0..MAX_STATES).map(|number| entry(&format!("done-{number}"), "exited", "Exited (0) 1 second ago"));
    let entries = done.chain([entry("web", "running", "Up 1 second")]).collect();

    let told = States::default().listed(list(entries));

    assert_eq!((told.containers.len(), told.truncated), (MAX_STATES, true));
    assert!(told.containers.contains(&state("web", "running", None, None)));
}

#[test]
fn the_longest_states_are_far_below_a_message() {
    let long = "\u{1}".repeat(2_000);
    let entry = json!({"Id": long, "Names": [long], "State": long, "Status": "Exited (-2147483648) 1 second ago"});

    let told = States::default().listed(list(vec![entry; MAX_STATES].into()));

    let bytes = rmp_serde::to_vec_named(&told).unwrap().len();
    assert!(bytes < signalbox_protocol::MAX_MESSAGE_BYTES / 4, "{bytes}");
}

#[test]
fn a_list_of_running_containers_says_nothing_about_the_others() {
    let entries = json!([entry("web", "running", "Up 1 second")]);

    let told = States::default().listed(List { is_whole: false, ..list(entries) });

    assert!(told.truncated);
}

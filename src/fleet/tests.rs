use signalbox_protocol::sample::NetworkUsage;

use super::*;

fn snapshot(millis: i64) -> Arc<Snapshot> {
    let sample = Sample { timestamp: Timestamp::from_millis(millis), ..Sample::default() };
    Arc::new(Snapshot::new(Uuid::nil(), sample))
}

/// A time later than every sample of these tests.
fn now() -> Timestamp {
    Timestamp::from_millis(1_000_000)
}

/// What the database has of the server.
fn kept(owner_id: Uuid, latest: Option<Arc<Snapshot>>, last_seen_at: Option<Timestamp>) -> Kept {
    Kept { server_id: Uuid::nil(), owner_id, latest, last_seen_at }
}

#[test]
fn an_older_sample_does_not_become_the_latest() {
    let fleet = Fleet::default();
    assert_eq!(fleet.record(snapshot(2_000), now()), Recency::Newest);

    assert_eq!(fleet.record(snapshot(1_000), now()), Recency::Older);

    assert_eq!(fleet.latest(Uuid::nil()).unwrap().sample.timestamp, Timestamp::from_millis(2_000));
}

#[test]
fn of_two_samples_with_one_time_the_first_stays_the_latest() {
    let fleet = Fleet::default();
    let record = |cpu_percent| {
        let sample = Sample { timestamp: Timestamp::from_millis(1_000), cpu_percent, ..Sample::default() };
        fleet.record(Arc::new(Snapshot::new(Uuid::nil(), sample)), now())
    };

    assert_eq!(record(1.0), Recency::Newest);
    assert_eq!(record(2.0), Recency::Same);

    assert_eq!(fleet.latest(Uuid::nil()).unwrap().sample.cpu_percent, 1.0);
}

#[test]
fn traffic_is_computed_between_the_last_two_samples() {
    let fleet = Fleet::default();
    let record = |millis, bytes_recv| {
        let network = vec![NetworkUsage { interface: "eth0".into(), bytes_recv, bytes_sent: 0, in_total: None }];
        let sample = Sample { timestamp: Timestamp::from_millis(millis), network, ..Sample::default() };
        fleet.record(Arc::new(Snapshot::new(Uuid::nil(), sample)), now());
        fleet.view(Uuid::nil()).traffic.received
    };

    assert_eq!(record(1_000, 100), None, "the first");
    assert_eq!(record(6_000, 600), Some(100.0));
    assert_eq!(record(6_000, 600), Some(100.0), "the same once more");
    assert_eq!(record(3_000, 900), Some(100.0), "one that comes late");
    assert_eq!(record(11_000, 50), None, "the counter was reset");
    assert_eq!(record(16_000, 100), Some(10.0));
}

#[test]
fn a_server_lacks_samples_until_it_sends_one() {
    let fleet = Fleet::default();
    assert!(!fleet.is_known_to_lack_samples(Uuid::nil()));

    fleet.recall(kept(Uuid::nil(), None, None));
    assert!(fleet.is_known_to_lack_samples(Uuid::nil()));
    assert_eq!(fleet.presence(Uuid::nil()), None);
    fleet.record(snapshot(1_000), now());

    assert!(!fleet.is_known_to_lack_samples(Uuid::nil()));
}

#[test]
fn late_disconnect_keeps_the_new_session() {
    let fleet = Fleet::default();
    let (server, old, new) = (Uuid::nil(), Uuid::from_u128(1), Uuid::from_u128(2));
    fleet.online(server, old, Uuid::nil(), Timestamp::from_millis(1));
    fleet.online(server, new, Uuid::nil(), Timestamp::from_millis(2));

    assert!(!fleet.offline(server, old));
    assert_eq!(fleet.presence(server).unwrap().status, ServerStatus::Online);
    assert!(fleet.offline(server, new));
    assert_eq!(fleet.presence(server).unwrap().status, ServerStatus::Offline);
}

#[test]
fn a_snapshot_is_the_sample_with_its_server() {
    let id = Uuid::from_u128(7);
    let snapshot = Snapshot::new(id, Sample::default());

    let json: serde_json::Value = serde_json::from_slice(&snapshot.json()).unwrap();

    let mut expected = serde_json::to_value(Sample::default()).unwrap();
    expected["server_id"] = id.to_string().into();
    assert_eq!(json, expected);
}

#[test]
fn only_the_instance_with_the_session_has_the_state_of_a_server() {
    let ((fleet, _), owner, session) = (Fleet::among_others(), Uuid::from_u128(7), Uuid::from_u128(1));
    assert_eq!(fleet.record(snapshot(1_000), now()), Recency::Older, "no session");
    fleet.online(Uuid::nil(), session, owner, Timestamp::from_millis(1));
    assert_eq!(fleet.record(snapshot(2_000), now()), Recency::Newest);
    assert!(fleet.latest(Uuid::nil()).is_some());
    assert_eq!((fleet.of_owner(owner).len(), fleet.of_owner(Uuid::nil()).len()), (1, 0));

    assert!(!fleet.offline(Uuid::nil(), Uuid::from_u128(2)));
    assert!(fleet.offline(Uuid::nil(), session));

    assert_eq!(fleet.presence(Uuid::nil()), None);
    assert!(fleet.latest(Uuid::nil()).is_none() && fleet.view(Uuid::nil()).latest.is_none());
    assert_eq!(fleet.record(snapshot(3_000), now()), Recency::Older, "it comes late");
    fleet.recall(kept(Uuid::nil(), None, None));
    assert!(!fleet.is_known_to_lack_samples(Uuid::nil()));
}

#[test]
fn the_last_sample_of_an_ended_session_stays_while_its_owner_is_watched() {
    let ((fleet, remote_cache), owner, session) = (Fleet::among_others(), Uuid::from_u128(7), Uuid::from_u128(1));
    remote_cache.follow(owner);
    fleet.online(Uuid::nil(), session, owner, Timestamp::from_millis(5));
    fleet.record(snapshot(2_000), now());

    fleet.offline(Uuid::nil(), session);

    let view = fleet.view(Uuid::nil());
    assert_eq!(view.presence, None);
    assert_eq!(view.heard_of_at, Some(Timestamp::from_millis(5)));
    assert_eq!(view.latest.unwrap().sample.timestamp, Timestamp::from_millis(2_000));
    // It reconnects, and has sent nothing yet.
    fleet.online(Uuid::nil(), Uuid::from_u128(2), owner, Timestamp::from_millis(6));
    assert!(fleet.latest(Uuid::nil()).is_none() && fleet.view(Uuid::nil()).latest.is_some());
    remote_cache.forget(owner);
    assert!(fleet.view(Uuid::nil()).latest.is_none());
}

#[test]
fn a_stored_sample_does_not_replace_a_newer_published_one() {
    let ((fleet, remote_cache), owner) = (Fleet::among_others(), Uuid::from_u128(7));
    fleet.recall(kept(owner, Some(snapshot(1_000)), None));
    assert!(fleet.view(Uuid::nil()).latest.is_none(), "nobody watches");
    remote_cache.follow(owner);
    remote_cache.sample(owner, snapshot(2_000), Timestamp::from_millis(9));

    fleet.recall(kept(owner, Some(snapshot(1_000)), Some(Timestamp::from_millis(3))));

    let view = fleet.view(Uuid::nil());
    assert_eq!(view.latest.unwrap().sample.timestamp, Timestamp::from_millis(2_000));
    assert_eq!(view.heard_of_at, Some(Timestamp::from_millis(9)));
}

#[test]
fn after_a_clock_correction_current_samples_become_the_latest() {
    let (fleet, now) = (Fleet::default(), Timestamp::from_millis(100_000_000));
    let at = |millis| now.plus_millis(millis).as_millis();
    assert_eq!(fleet.record(snapshot(at(7_200_000)), now.plus_millis(7_200_000)), Recency::Newest);

    assert_eq!(fleet.record(snapshot(at(-90_000)), now), Recency::Older, "it is of the past");
    assert_eq!(fleet.record(snapshot(at(-1_000)), now), Recency::Newest);

    assert_eq!(fleet.latest(Uuid::nil()).unwrap().sample.timestamp, now.plus_millis(-1_000));
    assert_eq!(fleet.view(Uuid::nil()).traffic, Traffic::default());
    assert_eq!(fleet.record(snapshot(at(-2_000)), now), Recency::Older, "from now on the newest is the latest again");
}

#[test]
fn a_clock_that_is_always_ahead_is_judged_by_its_own_time() {
    let (fleet, now) = (Fleet::default(), Timestamp::from_millis(100_000_000));
    let of_agent = now.plus_millis(7_200_000);
    fleet.record(snapshot(of_agent.as_millis()), of_agent);

    assert_eq!(fleet.record(snapshot(now.as_millis()), of_agent), Recency::Older, "two hours old there");
}

#[test]
fn other_instances_follow_a_clock_correction() {
    let ((fleet, remote_cache), owner) = (Fleet::among_others(), Uuid::from_u128(7));
    let now = Timestamp::from_millis(100_000_000);
    remote_cache.follow(owner);
    remote_cache.sample(owner, snapshot(now.plus_millis(7_200_000).as_millis()), now);

    remote_cache.sample(owner, snapshot(now.as_millis()), now);

    assert_eq!(fleet.view(Uuid::nil()).latest.unwrap().sample.timestamp, now);
}

#[test]
fn only_connected_agents_count_for_the_clock_offsets() {
    let (fleet, server, session) = (Fleet::default(), Uuid::nil(), Uuid::from_u128(1));
    fleet.online(server, session, Uuid::nil(), now());
    fleet.set_clock_offset(server, Some(90_000));
    assert_eq!(fleet.clock_offsets(), [90_000]);

    fleet.offline(server, session);

    assert_eq!((fleet.clock_offsets(), fleet.clock_offset(server)), (vec![], Some(90_000)));
}

#[test]
fn a_single_instance_is_sure_of_servers_it_has_not_seen() {
    let (fleet, (one_of_several, _), server) = (Fleet::default(), Fleet::among_others(), Uuid::nil());
    assert!(fleet.is_sure_of(fleet.presence(server)));
    assert!(!one_of_several.is_sure_of(one_of_several.presence(server)));

    one_of_several.online(server, Uuid::from_u128(1), Uuid::nil(), now());

    assert!(one_of_several.is_sure_of(one_of_several.presence(server)));
}

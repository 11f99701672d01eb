use std::sync::Arc;

use signalbox_protocol::Sample;
use signalbox_protocol::sample::DiskUsage;

use super::*;
use crate::fleet::remote_cache::RemoteStatus;
use crate::fleet::{Kept, Snapshot};

fn record(number: u128) -> VisibleServer {
    let status = ServerStatus::Pending;
    VisibleServer {
        id: Uuid::from_u128(number),
        owner_id: Uuid::nil(),
        status,
        last_seen_at: None,
        updated_at: Timestamp::from_millis(1),
    }
}

fn records(count: u128) -> Vec<VisibleServer> {
    (0..count).map(record).collect()
}

/// A list that is read now.
fn list(records: Vec<VisibleServer>) -> VisibleServers {
    VisibleServers { records, asked_at: Instant::now() }
}

fn view(count: u128) -> View {
    let mut view = View::default();
    view.replace(list(records(count)));
    view
}

fn sample(fleet: &Fleet, number: u128, millis: i64) {
    let sample = Sample { timestamp: Timestamp::from_millis(millis), ..Sample::default() };
    fleet.record(Arc::new(Snapshot::new(Uuid::from_u128(number), sample)), Timestamp::now());
}

/// The numbers of the servers in the next message.
fn told(view: &mut View, fleet: &Fleet, news: ChangeFilter) -> Vec<u128> {
    view.look(fleet, news);
    view.next(fleet).iter().map(|server| server.server_id.as_u128()).collect()
}

#[test]
fn ten_thousand_servers_are_sent_in_pieces_and_each_once() {
    let (mut view, fleet) = (view(10_000), Fleet::default());
    let mut all = Vec::new();

    view.look(&fleet, ChangeFilter::Anything);
    while view.has_more() {
        // A check in between changes nothing.
        let piece = told(&mut view, &fleet, ChangeFilter::Anything);
        assert!(piece.len() <= AT_ONCE);
        all.extend(piece);
    }

    assert_eq!(all, (0..10_000).collect::<Vec<_>>());
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), []);
}

#[test]
fn only_changed_servers_are_sent_again() {
    let (mut view, fleet) = (view(3), Fleet::default());
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), [0, 1, 2]);

    sample(&fleet, 1, 5);
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Status), []);
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), [1]);
    fleet.online(Uuid::from_u128(2), Uuid::nil(), Uuid::nil(), Timestamp::from_millis(9));
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Status), [2]);
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), []);
}

#[test]
fn a_waiting_server_is_sent_in_its_latest_state() {
    let (mut view, fleet) = (view(1), Fleet::default());
    view.look(&fleet, ChangeFilter::Anything);
    sample(&fleet, 0, 1);
    sample(&fleet, 0, 2);

    let message = view.next(&fleet);

    assert_eq!(message[0].timestamp, Some(Timestamp::from_millis(2)));
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), []);
}

#[test]
fn a_new_list_sends_new_servers_and_forgets_deleted_ones() {
    let (mut view, fleet) = (view(3), Fleet::default());
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), [0, 1, 2]);
    sample(&fleet, 0, 1);
    sample(&fleet, 1, 1);
    view.look(&fleet, ChangeFilter::Anything);

    assert!(!view.replace(list(records(3))));
    assert!(view.replace(list(records(5).split_off(1))));

    assert_eq!(told(&mut view, &fleet, ChangeFilter::Status), [3, 4]);
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), [1]);
    let renamed = VisibleServer { updated_at: Timestamp::from_millis(2), ..record(1) };
    assert!(view.replace(list(vec![renamed])));
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), []);
}

#[test]
fn the_fullest_disk_is_shown_and_none_without_capacity() {
    let fleet = Fleet::default();
    let disk = |total, percent| DiskUsage { total, percent, ..DiskUsage::default() };
    let disk_usage = vec![disk(10, 40.0), disk(10, 90.0), disk(0, 100.0)];
    let snapshot = Snapshot::new(Uuid::nil(), Sample { disk_usage, ..Sample::default() });
    fleet.record(Arc::new(snapshot), Timestamp::now());
    let mut view = view(2);
    view.look(&fleet, ChangeFilter::Anything);

    let shown: Vec<_> = view.next(&fleet).iter().map(|server| (server.disk_percent, server.containers)).collect();

    assert_eq!(shown, [(Some(90.0), Some(0)), (None, None)]);
}

#[test]
fn a_status_heard_counts_until_the_next_query() {
    let ((fleet, remote_cache), owner, id) = (Fleet::among_others(), Uuid::from_u128(7), Uuid::from_u128(0));
    remote_cache.follow(owner);
    let mut view = view(1);
    assert_eq!(told(&mut view, &fleet, ChangeFilter::Anything), [0]);

    remote_cache.status(owner, id, RemoteStatus::now(ServerStatus::Online, None));
    view.look(&fleet, ChangeFilter::Status);
    assert_eq!(view.next(&fleet)[0].status, ServerStatus::Online);

    view.replace(list(records(1)));
    view.look(&fleet, ChangeFilter::Status);
    assert_eq!(view.next(&fleet)[0].status, ServerStatus::Pending);
}

#[test]
fn with_several_instances_a_sample_that_the_database_may_have_counts_as_missing() {
    let ((fleet, remote_cache), owner, id) = (Fleet::among_others(), Uuid::from_u128(7), Uuid::from_u128(0));
    remote_cache.follow(owner);
    let seen = |millis| Some(Timestamp::from_millis(millis));
    let at = |millis| vec![VisibleServer { status: ServerStatus::Online, last_seen_at: seen(millis), ..record(0) }];
    let mut view = View::default();
    view.replace(list(at(5)));
    assert_eq!(view.without_sample(&fleet), [Missing { server_id: id, owner_id: Uuid::nil(), last_seen_at: seen(5) }]);

    fleet.recall(Kept { server_id: id, owner_id: owner, latest: None, last_seen_at: seen(5) });
    assert_eq!(view.without_sample(&fleet), [], "there is none");
    view.replace(list(at(6)));
    assert_eq!(view.without_sample(&fleet).len(), 1, "it was seen since");
    fleet.online(id, Uuid::nil(), owner, Timestamp::from_millis(7));
    sample(&fleet, 0, 7);

    assert_eq!(view.without_sample(&fleet), [], "it is here");
}

//! The number of alerts is stored separately, and stays right whatever happens to them.

use signalbox::audit::Actor;
use signalbox::store::{Alert, AlertAudience, AlertChange, AlertFilter, PageRequest, Store, Visibility};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{alert, owner, server};

const ALL: PageRequest = PageRequest { limit: 500, offset: 0 };

/// The alerts that a filter finds, and how many it says there are.
async fn found(store: &Store, owner_id: Uuid, filter: AlertFilter) -> (usize, u64) {
    let page = store.list_alerts(&Visibility::of_owner(owner_id), filter, ALL).await.unwrap();
    (page.items.len(), page.total)
}

/// How many have each status, by the counts that are kept.
async fn counted(store: &Store, owner_id: Uuid) -> [i64; 3] {
    let counts = store.count_alerts(&Visibility::of_owner(owner_id)).await.unwrap();
    ["active", "acknowledged", "resolved"]
        .map(|status| counts.iter().filter(|count| count.status == status).map(|count| count.count).sum())
}

#[actix_web::test]
async fn lists_and_counts_agree_through_every_change() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let owner_id = owner(&store).await;
    let (one, two) = (server(&store, owner_id, "web-1", "a").await, server(&store, owner_id, "web-2", "a").await);
    let thresholds: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let mut alerts = Vec::new();
    for server_id in [one, two] {
        for threshold_id in &thresholds {
            let mut alert = alert(owner_id, server_id, *threshold_id);
            alert.severity = if *threshold_id == thresholds[0] { "critical" } else { "warning" }.to_owned();
            let opened = AlertChange::Opened { alert: Box::new(alert.clone()), audience: AlertAudience::default() };
            store.change_alerts(&[opened]).await.unwrap();
            alerts.push(alert);
        }
    }
    let before = Timestamp::now();
    assert_eq!(counted(&store, owner_id).await, [6, 0, 0]);

    let actor = Actor::command_line();
    store.acknowledge_alert(owner_id, alerts[0].id, &actor, Timestamp::now()).await.unwrap();
    store.resolve_alert(owner_id, alerts[1].id, &actor, Timestamp::now()).await.unwrap();
    let (sample_at, at) = (before, Timestamp::now());
    let recovered = AlertChange::Resolved { id: alerts[3].id, by: "recovered", sample_at, at };
    store.change_alerts(&[recovered]).await.unwrap();

    let all = AlertFilter::default();
    let status = |status| AlertFilter { status: Some(status), ..all.clone() };
    assert_eq!(counted(&store, owner_id).await, [3, 1, 2]);
    assert_eq!(found(&store, owner_id, all.clone()).await, (6, 6));
    assert_eq!(found(&store, owner_id, status("active")).await, (3, 3));
    assert_eq!(found(&store, owner_id, status("acknowledged")).await, (1, 1));
    assert_eq!(found(&store, owner_id, status("resolved")).await, (2, 2));
    let kinds = [
        (AlertFilter { severity: Some("critical"), ..all.clone() }, 2),
        (AlertFilter { severity: Some("info"), ..all.clone() }, 0),
        (AlertFilter { threshold_id: Some(thresholds[1]), ..status("resolved") }, 1),
        (AlertFilter { server_id: Some(two), metric_type: Some("cpu"), ..all.clone() }, 3),
        (AlertFilter { since: Some(before), ..all.clone() }, 6),
        (AlertFilter { since: Some(before), ..status("resolved") }, 2),
        (AlertFilter { since: Some(at.plus_millis(60_000)), ..all.clone() }, 4),
        (AlertFilter { until: Some(Timestamp::from_millis(1)), ..all.clone() }, 0),
        (AlertFilter { until: Some(at.plus_millis(60_000)), since: Some(before), ..all.clone() }, 6),
    ];
    for (filter, expected) in kinds {
        assert_eq!(found(&store, owner_id, filter.clone()).await, (expected, expected as u64), "{filter:?}");
    }

    assert!(store.delete_server(owner_id, two, actor).await.unwrap());
    assert_eq!(counted(&store, owner_id).await, [1, 1, 1]);
    assert_eq!(found(&store, owner_id, all.clone()).await, (3, 3));
    assert_eq!(found(&store, Uuid::now_v7(), all).await, (0, 0));
    store.close().await;
}

#[actix_web::test]
async fn what_is_forgotten_is_counted_no_more() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let owner_id = owner(&store).await;
    let server_id = server(&store, owner_id, "web-1", "a").await;
    let old = alert(owner_id, server_id, Uuid::now_v7());
    let opened = AlertChange::Opened { alert: Box::new(old.clone()), audience: AlertAudience::default() };
    let (sample_at, at) = (Timestamp::now(), Timestamp::now());
    let ended = AlertChange::Resolved { id: old.id, by: "recovered", sample_at, at };
    store.change_alerts(&[opened, ended]).await.unwrap();
    assert_eq!(counted(&store, owner_id).await, [0, 0, 1]);

    assert_eq!(store.forget_alerts(at.plus_millis(1)).await.unwrap(), 1);

    assert_eq!(store.count_alerts(&Visibility::of_owner(owner_id)).await.unwrap(), []);
    store.close().await;
}

/// The expected content of a list, found by reading each alert.
fn expected(alerts: &[Alert], filter: &AlertFilter) -> Vec<Uuid> {
    let matches = |alert: &&Alert| {
        filter.status.is_none_or(|status| alert.status == status)
            && filter.server_id.is_none_or(|id| alert.server_id == id)
            && filter.severity.is_none_or(|severity| alert.severity == severity)
            && filter.metric_type.is_none_or(|metric_type| alert.metric_type == metric_type)
            && filter.threshold_id.is_none_or(|id| alert.threshold_id == id)
            && filter.since.is_none_or(|since| alert.resolved_at.is_none_or(|at| Timestamp::from(at) >= since))
            && filter.until.is_none_or(|until| Timestamp::from(alert.triggered_at) < until)
    };
    let mut ids: Vec<Uuid> = alerts.iter().filter(matches).map(|alert| alert.id).collect();
    ids.sort_by(|one, other| other.cmp(one));
    ids
}

/// An id that was made then, the `n`th.
fn id_of(at: Timestamp, n: u128) -> Uuid {
    Uuid::from_u128((u128::try_from(at.as_millis()).unwrap() << 80) | (0x7000_8000 << 48) | n)
}

#[actix_web::test]
async fn lists_with_times_have_what_a_look_at_each_alert_finds() {
    const MINUTE: i64 = 60_000;
    const DAY: i64 = 1_440 * MINUTE;
    /// The range of ids that are counted together.
    const BUCKET: i64 = 1 << 28;
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let owner_id = owner(&store).await;
    let servers = [server(&store, owner_id, "web-1", "a").await, server(&store, owner_id, "web-2", "a").await];
    let thresholds: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let start = Timestamp::now().plus_millis(-20 * DAY);
    // Most are resolved within minutes and have an id of their time. Some last for hours or days, or are not resolved; others
    // have ids of another time, before or after, because the clock was set back before they were resolved.
    let lasting = [1, 5, 30, 350, 365, 3_000, 14_400, -2, -600].map(|minutes| Some(minutes * MINUTE));
    let drifts = [0, 0, 0, 0, 0, 9, -9, 11, -11, 2_880, -2_880].map(|minutes| minutes * MINUTE);
    let mut alerts = Vec::new();
    for n in 0..400_usize {
        let triggered_at = start.plus_millis(i64::try_from(n).unwrap() * 72 * MINUTE);
        let severity = ["warning", "warning", "critical", "info"][n / 3 % 4].to_owned();
        // There is only one open alert of a kind.
        let metric_type = if n == 58 { "load" } else { ["cpu", "cpu", "disk"][n / 7 % 3] }.to_owned();
        let lasts = if n % 29 == 0 { None } else { lasting[if n % 4 == 0 { n / 4 % 9 } else { n % 3 }] };
        let drift = drifts[if n % 5 == 0 { n / 5 % 11 } else { 0 }];
        let resolved_at = lasts.map(|lasts| triggered_at.plus_millis(lasts).into());
        let open = if n % 2 == 0 { "active" } else { "acknowledged" };
        alerts.push(Alert {
            id: id_of(triggered_at.plus_millis(drift), n as u128),
            severity,
            metric_type,
            // One unresolved alert of a threshold and target.
            target: Some(n.to_string()),
            status: if resolved_at.is_some() { "resolved" } else { open }.to_owned(),
            triggered_at: triggered_at.into(),
            resolved_at,
            rearmed_at: resolved_at,
            ..alert(owner_id, servers[n % 2], thresholds[n / 2 % 3])
        });
    }
    // On each side of a midnight and of the boundaries of counted buckets, and at the very moment.
    let beginning = |of: i64| {
        let at = start.plus_millis(10 * DAY).as_millis();
        Timestamp::from_millis(at - at.rem_euclid(of))
    };
    let edges = [beginning(DAY), beginning(BUCKET), beginning(BUCKET).plus_millis(BUCKET)];
    for (n, edge) in edges.iter().flat_map(|edge| [-1, 0, 1].map(|by| edge.plus_millis(by))).enumerate() {
        alerts.push(Alert {
            id: id_of(edge, 1_000 + n as u128),
            target: Some(format!("edge {n}")),
            status: "resolved".to_owned(),
            triggered_at: edge.into(),
            resolved_at: Some(edge.plus_millis(MINUTE).into()),
            rearmed_at: Some(edge.plus_millis(MINUTE).into()),
            ..alert(owner_id, servers[n % 2], thresholds[n / 2 % 3])
        });
    }
    let opened = alerts
        .iter()
        .map(|alert| AlertChange::Opened { alert: Box::new(alert.clone()), audience: AlertAudience::default() });
    store.change_alerts(&opened.collect::<Vec<_>>()).await.unwrap();

    let all = AlertFilter::default();
    let kinds = [
        all.clone(),
        AlertFilter { status: Some("resolved"), ..all.clone() },
        AlertFilter { status: Some("active"), ..all.clone() },
        AlertFilter { severity: Some("critical"), ..all.clone() },
        AlertFilter { severity: Some("info"), metric_type: Some("disk"), status: Some("resolved"), ..all.clone() },
        AlertFilter { metric_type: Some("ram"), ..all.clone() },
        AlertFilter { server_id: Some(servers[1]), ..all.clone() },
        AlertFilter { server_id: Some(servers[0]), status: Some("resolved"), ..all.clone() },
        AlertFilter { server_id: Some(servers[0]), threshold_id: Some(thresholds[2]), ..all.clone() },
        AlertFilter { threshold_id: Some(thresholds[0]), severity: Some("warning"), ..all.clone() },
        AlertFilter { status: Some("acknowledged"), server_id: Some(servers[1]), ..all.clone() },
    ];
    let at = |days: i64| Some(start.plus_millis(days * DAY + 17 * MINUTE));
    let times = [
        (None, None),
        (at(2), None),
        (at(10), None),
        (at(18), None),
        (at(30), None),
        (None, at(-1)),
        (None, at(3)),
        (None, at(11)),
        (None, at(30)),
        (at(1), at(19)),
        (at(8), at(9)),
        (at(12), at(12)),
        (at(12), at(12).map(|at| at.plus_millis(15 * MINUTE))),
    ];
    // The ids that certainly belong to a list begin ten minutes after `since` and end ten minutes before `until`.
    let near = edges.iter().flat_map(|edge| [-1, 0, 1].map(|by| edge.plus_millis(by)));
    let near: Vec<Timestamp> =
        near.flat_map(|at| [at, at.plus_millis(-10 * MINUTE), at.plus_millis(10 * MINUTE)]).collect();
    let since_edges = near.iter().map(|at| (Some(*at), None));
    let until_edges = near.iter().map(|at| (None, Some(*at)));
    let between = near.iter().zip(near.iter().skip(18)).map(|(since, until)| (Some(*since), Some(*until)));
    let edges: Vec<_> = since_edges.chain(until_edges).chain(between).collect();
    for (since, until) in edges {
        for filter in [&kinds[0], &kinds[3], &kinds[6], &kinds[9]] {
            let filter = AlertFilter { since, until, ..filter.clone() };
            let expected = expected(&alerts, &filter);
            let found = store.list_alerts(&Visibility::of_owner(owner_id), filter.clone(), ALL).await.unwrap();

            let ids: Vec<Uuid> = found.items.iter().map(|alert| alert.id).collect();
            assert_eq!((found.total, ids), (expected.len() as u64, expected), "{filter:?}");
        }
    }
    for (since, until) in times {
        for filter in &kinds {
            let filter = AlertFilter { since, until, ..filter.clone() };
            let expected = expected(&alerts, &filter);
            for page in [ALL, PageRequest { limit: 20, offset: 15 }, PageRequest { limit: 500, offset: 90 }] {
                let found = store.list_alerts(&Visibility::of_owner(owner_id), filter.clone(), page).await.unwrap();

                let ids: Vec<Uuid> = found.items.iter().map(|alert| alert.id).collect();
                let (offset, limit) = (page.offset as usize, page.limit as usize);
                let wanted: Vec<Uuid> = expected.iter().skip(offset).take(limit).copied().collect();
                assert_eq!((found.total, ids), (expected.len() as u64, wanted), "{filter:?} from {offset}");
            }
        }
    }
    store.close().await;
}

//! Alerts, thresholds and silences of a server that somebody shares: its role decides, as for everything else of the server.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use signalbox::store::{Alert, AlertAudience, AlertChange};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::Shared;
use crate::alerts_api::alerts::open_alert;
use crate::alerts_api::of_server;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::rows::alert;
use crate::support::{Account, text_of, uuid_of};

/// A threshold for all servers of its owner.
fn of_all() -> Value {
    json!({"all": true, "metric_type": "cpu", "threshold_value": 90.0, "comparison": "gt"})
}

/// A responder and those below and above: what each may do to an alert of the server.
#[actix_web::test]
async fn who_sees_a_server_reads_its_alerts_and_a_responder_handles_them() {
    let shared = Shared::start().await;
    let threshold = shared.site.new_threshold(of_server(shared.site.server_id)).await;
    let alert = open_alert(&shared.site, &threshold, "warning").await;
    let (path, list) = (format!("/alerts/{}", alert.id), format!("/alerts?server_id={}", shared.site.server_id));
    shared.by_guest("GET", &path).expect_error(404, "not_found").await;
    assert_eq!(shared.by_guest("GET", &list).expect(200).await, json!([]));

    let viewer = shared.grant_server("viewer", json!([])).await;
    assert_eq!(shared.by_guest("GET", &path).expect(200).await["id"], json!(alert.id));
    assert_eq!(uuid_of(&shared.by_guest("GET", &list).expect(200).await[0]["id"]), alert.id);
    for verb in ["acknowledge", "resolve"] {
        shared.by_guest("POST", &format!("{path}/{verb}")).expect_error(403, "forbidden").await;
    }
    shared.end(&viewer).await;
    shared.grant_server("responder", json!([])).await;
    let acknowledged = shared.by_guest("POST", &format!("{path}/acknowledge")).expect(200).await;
    let resolved = shared.by_guest("POST", &format!("{path}/resolve")).expect(200).await;

    assert_eq!((&acknowledged["status"], &resolved["status"]), (&json!("acknowledged"), &json!("resolved")));
    assert_eq!(resolved["resolved_by"], json!(shared.guest.id));
}

#[actix_web::test]
async fn a_responder_silences_the_server_and_a_viewer_only_sees_it() {
    let shared = Shared::start().await;
    let responder = shared.grant_server("responder", json!([])).await;
    let ends_at = signalbox_protocol::Timestamp::now().plus_millis(3_600_000).to_string();
    let body = json!({"server_id": shared.site.server_id, "ends_at": ends_at});
    let silence = shared.by_guest("POST", "/alerts/silences").json(body.clone()).expect(201).await;
    let path = format!("/alerts/silences/{}", text_of(&silence["id"]));
    let list = format!("/alerts/silences?server_id={}", shared.site.server_id);

    assert_eq!(shared.by_guest("GET", &path).expect(200).await, silence);
    assert_eq!(shared.by_guest("GET", &list).expect(200).await, json!([silence]));
    for list in [shared.by_owner("GET", "/alerts/silences"), shared.by_guest("GET", "/alerts/silences")] {
        assert_eq!(list.expect(200).await, json!([silence]));
    }
    shared.by_guest("PUT", &path).json(json!({"reason": "disk"})).expect(200).await;
    shared.end(&responder).await;
    shared.by_guest("GET", &path).expect_error(404, "not_found").await;
    shared.grant_server("viewer", json!([])).await;
    shared.by_guest("GET", &path).expect(200).await;
    shared.by_guest("DELETE", &path).expect_error(403, "forbidden").await;
    shared.by_guest("POST", "/alerts/silences").json(body).expect_error(403, "forbidden").await;
    shared.by_owner("DELETE", &path).expect(200).await;
}

#[actix_web::test]
async fn who_manages_a_server_makes_rules_for_it_and_for_no_other_server_of_its_owner() {
    let shared = Shared::start().await;
    shared.grant_server("manager", json!([])).await;
    let body = of_server(shared.site.server_id);
    let made = shared.by_guest("POST", "/alerts/thresholds").json(body.clone()).expect(201).await;
    let path = format!("/alerts/thresholds/{}", text_of(&made["id"]));
    let list = format!("/alerts/thresholds?server_id={}", shared.site.server_id);

    assert_eq!(shared.by_guest("GET", &path).expect(200).await, made);
    assert_eq!(shared.by_guest("GET", &list).expect(200).await, json!([made]));
    assert_eq!(shared.by_owner("GET", "/alerts/thresholds").expect(200).await, json!([made]));
    assert_eq!(shared.by_guest("GET", "/alerts/thresholds").expect(200).await, json!([made]));
    // A rule for a tag or for everything is its owner's alone.
    shared.by_owner("POST", "/alerts/thresholds").json(of_all()).expect(201).await;
    assert_eq!(shared.by_guest("GET", "/alerts/thresholds").expect(200).await, json!([made]));
    shared.by_guest("PUT", &path).json(json!({"threshold_value": 70.0})).expect(200).await;
    for elsewhere in [json!({"server_id": null, "tag": "db"}), json!({"server_id": null, "all": true})] {
        shared.by_guest("PUT", &path).json(elsewhere).expect_error(403, "forbidden").await;
    }
    let own = shared.by_guest("POST", "/servers").json(json!({"name": "own", "host": "192.0.2.9"})).expect(201).await;
    let moved = json!({"server_id": own["id"]});
    shared.by_guest("PUT", &path).json(moved).expect_error(403, "forbidden").await;
    let kept: Value = shared.by_owner("GET", &path).expect(200).await;
    assert_eq!((&kept["server_id"], &kept["threshold_value"]), (&made["server_id"], &json!(70.0)));
    shared.by_guest("DELETE", &path).expect(200).await;
}

/// Alerts of three owners: the guest sees those whose messages begin with "seen".
struct Alarming {
    shared: Shared,
    seen: Vec<Uuid>,
}

impl Alarming {
    async fn start() -> Self {
        let shared = Shared::start().await;
        let other = shared.site.service.register("other").await;
        let mut alarming = Self { shared, seen: Vec::new() };
        let owner = alarming.shared.site.owner.clone();
        let guest = alarming.shared.guest.clone();
        // In turn, so that every page has alerts of several owners.
        let servers = [
            (alarming.server(&owner, "db-1", &["db"]).await, &owner, true),
            (alarming.server(&owner, "web-1", &["web"]).await, &owner, false),
            (alarming.server(&other, "all-1", &[]).await, &other, true),
            (alarming.server(&guest, "own-1", &[]).await, &guest, true),
            (alarming.server(&owner, "single-1", &[]).await, &owner, true),
        ];
        alarming.shared.grant(json!({"tag": "db"}), "viewer", json!([])).await;
        alarming.shared.grant(json!({"server_id": servers[4].0}), "viewer", json!([])).await;
        let all = json!({"subject": {"username": "guest"}, "scope": {"all": true}, "role": "viewer"});
        alarming.shared.by(&other, "POST", "/grants").json(all).expect(201).await;
        for round in 0..4 {
            for (server_id, account, is_seen) in &servers {
                alarming.raise(*server_id, account, *is_seen, round).await;
            }
        }
        alarming.seen.reverse();
        alarming
    }

    async fn server(&self, account: &Account, name: &str, tags: &[&str]) -> Uuid {
        let body = json!({"name": name, "host": "192.0.2.10", "tags": tags});
        uuid_of(&self.shared.by(account, "POST", "/servers").json(body).expect(201).await["id"])
    }

    /// The first alert of each server is resolved, the second acknowledged, and the others are active.
    async fn raise(&mut self, server_id: Uuid, account: &Account, is_seen: bool, round: usize) {
        let severity = if round == 2 { "critical" } else { "warning" };
        let raised = Alert { severity: severity.to_owned(), ..alert(account.id, server_id, Uuid::now_v7()) };
        let store = &self.shared.site.service.state.store;
        let opened = AlertChange::Opened { alert: Box::new(raised.clone()), audience: AlertAudience::default() };
        store.change_alerts(&[opened]).await.unwrap();
        if round == 0 {
            let at = Timestamp::now();
            let resolved = AlertChange::Resolved { id: raised.id, by: "recovery", sample_at: at, at };
            store.change_alerts(&[resolved]).await.unwrap();
        }
        if round == 1 {
            self.shared.by(account, "POST", &format!("/alerts/{}/acknowledge", raised.id)).expect(200).await;
        }
        if is_seen {
            self.seen.push(raised.id);
        }
    }

    async fn list(&self, query: &str) -> (Vec<Uuid>, usize) {
        let answer = self.shared.by_guest("GET", &format!("/alerts{query}")).expect_answer(200).await;
        let ids = answer.json().as_array().unwrap().iter().map(|alert| uuid_of(&alert["id"])).collect();
        (ids, answer.header("X-Total-Count").parse().unwrap())
    }
}

#[actix_web::test]
async fn the_alerts_of_shared_servers_are_in_one_list_newest_first() {
    let alarming = Alarming::start().await;
    let now = Timestamp::now();
    let times = format!("since={}&until={}", now.plus_millis(-3_600_000), now.plus_millis(3_600_000));

    for filter in [String::new(), times.replace('+', "%2B")] {
        assert_eq!(alarming.list(&format!("?{filter}")).await, (alarming.seen.clone(), 16), "{filter}");
        for (page, expected) in alarming.seen.chunks(3).enumerate() {
            let query = format!("?limit=3&offset={}&{filter}", 3 * page);
            assert_eq!(alarming.list(&query).await, (expected.to_vec(), 16), "{query}");
        }
        for (query, rounds) in [
            ("status=resolved", vec![0]),
            ("status=acknowledged", vec![1]),
            ("status=active", vec![2, 3]),
            ("severity=critical", vec![2]),
            ("severity=warning&status=active", vec![3]),
        ] {
            // Four servers a round, the newest round first.
            let of_rounds = |round: &usize| alarming.seen[(3 - round) * 4..(4 - round) * 4].to_vec();
            let expected: Vec<Uuid> = rounds.iter().rev().flat_map(of_rounds).collect();
            let total = expected.len();
            assert_eq!(alarming.list(&format!("?{query}&{filter}")).await, (expected, total), "{query}&{filter}");
        }
    }
    assert_eq!(alarming.list("?offset=16").await, (Vec::new(), 16));
    assert_eq!(alarming.list("?severity=info").await, (Vec::new(), 0));
}

#[actix_web::test]
async fn an_alert_names_the_owner_of_its_server_and_counts_are_of_all_that_are_seen() {
    let alarming = Alarming::start().await;

    let list = alarming.shared.by_guest("GET", "/alerts?limit=500").expect(200).await;
    let summary = alarming.shared.by_guest("GET", "/alerts/summary").expect(200).await;

    let owners: BTreeSet<String> =
        list.as_array().unwrap().iter().map(|alert| text_of(&alert["owner"]["username"])).collect();
    assert_eq!(owners, ["guest", "other", "owner"].map(str::to_owned).into());
    assert_eq!(summary["total"], 16);
    assert_eq!(summary["by_status"], json!({"active": 8, "acknowledged": 4, "resolved": 4}));
    assert_eq!(summary["by_severity"], json!({"info": 0, "warning": 8, "critical": 4}));
    assert_eq!(summary["servers"].as_array().unwrap().len(), 4);
}

/// A dashboard of the guest's alerts.
async fn watch(shared: &Shared) -> Dashboard {
    let pass = Pass::Header(&shared.guest.token);
    Dashboard::open(shared.site.service.address, "/api/v1/ws/alerts", pass, &[]).await.expect("a dashboard")
}

#[actix_web::test]
async fn a_dashboard_shows_the_alerts_of_shared_servers_as_they_come() {
    let shared = Shared::start().await;
    let grant = shared.grant(json!({"all": true}), "viewer", json!([])).await;
    let first = shared.site.new_threshold(of_server(shared.site.server_id)).await;
    let open = open_alert(&shared.site, &first, "warning").await;

    let mut dashboard = watch(&shared).await;

    let shown = dashboard.expect("alert").await;
    assert_eq!(shown["id"], json!(open.id));
    assert_eq!(shown, shared.by_guest("GET", "/alerts").expect(200).await[0]);
    shared.by_owner("POST", &format!("/alerts/{}/acknowledge", open.id)).expect(200).await;
    assert_eq!(dashboard.expect("alert").await["status"], "acknowledged");

    // The dashboard forgets what it may not know any more, and hears no more of it.
    shared.end(&grant).await;
    dashboard.expect("alerts").await;
    shared.by_owner("POST", &format!("/alerts/{}/resolve", open.id)).expect(200).await;
    shared.grant_server("viewer", json!([])).await;
    dashboard.expect("alerts").await;
    let second = shared.site.new_threshold(shared.site.cpu_threshold()).await;
    let next = open_alert(&shared.site, &second, "critical").await;
    shared.by_owner("POST", &format!("/alerts/{}/acknowledge", next.id)).expect(200).await;
    assert_eq!(dashboard.expect("alert").await["id"], json!(next.id));
}

/// An alert of a server of the guest's own. Returns its id.
async fn open_own_alert(shared: &Shared) -> Uuid {
    let server = json!({"name": "own", "host": "192.0.2.9"});
    let server_id = uuid_of(&shared.by_guest("POST", "/servers").json(server).expect(201).await["id"]);
    let threshold = shared.by_guest("POST", "/alerts/thresholds").json(of_server(server_id)).expect(201).await;
    let raised = alert(shared.guest.id, server_id, uuid_of(&threshold["id"]));
    let opened = AlertChange::Opened { alert: Box::new(raised.clone()), audience: AlertAudience::default() };
    shared.site.service.state.store.change_alerts(&[opened]).await.unwrap();
    raised.id
}

#[actix_web::test]
async fn a_grant_brings_the_alerts_that_are_open_and_a_change_of_other_servers_brings_nothing() {
    let shared = Shared::start().await;
    let threshold = shared.site.new_threshold(of_server(shared.site.server_id)).await;
    let open = open_alert(&shared.site, &threshold, "warning").await;
    let own = open_own_alert(&shared).await;
    let mut dashboard = watch(&shared).await;
    // It has read what its guest sees without the grant.
    assert_eq!(dashboard.expect("alert").await["id"], json!(own));

    shared.by_owner("PUT", &shared.path("/servers", "")).json(json!({"tags": ["db"]})).expect(200).await;
    shared.grant(json!({"tag": "db"}), "viewer", json!([])).await;
    dashboard.expect("alerts").await;
    let shown = [uuid_of(&dashboard.expect("alert").await["id"]), uuid_of(&dashboard.expect("alert").await["id"])];
    assert_eq!(BTreeSet::from(shown), BTreeSet::from([open.id, own]));

    // A new name tells all guests that something has changed, but the servers are the same.
    shared.by_owner("PUT", &shared.path("/servers", "")).json(json!({"name": "web-2"})).expect(200).await;
    shared.by_owner("POST", &format!("/alerts/{}/acknowledge", open.id)).expect(200).await;
    assert_eq!(dashboard.expect("alert").await["status"], "acknowledged");
    shared.by_owner("PUT", &shared.path("/servers", "")).json(json!({"tags": []})).expect(200).await;
    dashboard.expect("alerts").await;
}

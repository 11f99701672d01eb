//! On which servers a token works.

use serde_json::{Value, json};

use super::Scene;
use crate::support::alerts::{Alarms, Threshold};
use crate::support::{text_of, uuid_of};

/// What lists of a token contain, as texts: each must name the servers of the scope and no others.
const LISTS: [&str; 8] = [
    "/servers",
    "/servers?role=owner",
    "/servers?q=1",
    "/metrics/fleet",
    "/metrics/fleet/heat",
    "/servers/availability",
    "/alerts/thresholds",
    "/alerts/silences",
];

impl Scene {
    /// Lists of the owner that name both servers.
    async fn fill_lists(&self) {
        for (server_id, tag) in [(self.web, "web"), (self.db, "db")] {
            for reach in [json!({"server_id": server_id}), json!({"tag": tag})] {
                let mut threshold = json!({"metric_type": "cpu", "comparison": "gt", "threshold_value": 99.5});
                threshold.as_object_mut().unwrap().extend(reach.as_object().unwrap().clone());
                let mut silence =
                    json!({"reason": "work", "starts_at": "2098-01-01T00:00:00Z", "ends_at": "2098-01-02T00:00:00Z"});
                silence.as_object_mut().unwrap().extend(reach.as_object().unwrap().clone());
                for (path, body) in [("/alerts/thresholds", threshold), ("/alerts/silences", silence)] {
                    self.service.client.post(path).bearer(&self.owner.token).json(body).expect(201).await;
                }
            }
        }
    }
}

#[actix_web::test]
async fn lists_have_the_servers_of_the_scope_and_no_others() {
    let scene = Scene::start().await;
    scene.fill_lists().await;
    let scopes = [json!({"tag": "db"}), json!({"server_ids": [scene.db]})];

    for scope in scopes {
        let token = scene.token(json!({"role": "manager", "scope": scope})).await;
        assert_eq!(token.servers().await, ["db-1"], "{scope}");
        for path in LISTS {
            let answer = token.get(path).expect_answer(200).await;
            assert!(answer.text.contains(&scene.db.to_string()), "{scope} {path}: {answer}");
            assert!(!answer.text.contains(&scene.web.to_string()), "{scope} {path}: {answer}");
            assert!(!answer.text.contains(r#""tag":"web""#), "{scope} {path}: {answer}");
        }
        let by_tag = token.get("/alerts/thresholds").expect(200).await;
        let tags: Vec<&Value> = by_tag.as_array().unwrap().iter().map(|threshold| &threshold["tag"]).collect();
        assert_eq!(tags.contains(&&json!("db")), scope["tag"] == "db", "{by_tag}");
        for path in ["/alerts/thresholds", "/alerts/silences", "/alerts"] {
            let other = token.get(&format!("{path}?server_id={}", scene.web)).expect(200).await;
            assert_eq!(other, json!([]), "{scope} {path}");
        }
        token.get(&format!("/servers/{}", scene.db)).expect(200).await;
        token.get(&format!("/servers/{}", scene.web)).expect_error(404, "not_found").await;
    }
    let all = scene.token(json!({"scope": {"all": true}})).await;
    assert_eq!(all.servers().await, ["db-1", "web-1"]);
}

#[actix_web::test]
async fn alerts_are_those_of_the_scope_in_lists_and_counts() {
    let scene = Scene::start().await;
    for server_id in [scene.web, scene.db] {
        let alarms = Alarms::of(&scene.service, &scene.owner, server_id);
        let threshold = alarms.add(Threshold::cpu(90.0)).await;
        let body = json!({"server_id": server_id, "name": "agent"});
        let key = scene.service.client.post("/api-keys").bearer(&scene.owner.token).json(body).expect(201).await;
        let mut probe = alarms.probe(&text_of(&key["key"])).await;
        probe.cpu(99.0).await;
        alarms.until(threshold, "active").await;
    }

    for scope in [json!({"tag": "db"}), json!({"server_ids": [scene.db]})] {
        let token = scene.token(json!({"scope": scope})).await;
        for path in
            ["/alerts", "/alerts?status=active", "/alerts?since=2020-01-01T00:00:00Z", "/alerts?severity=warning"]
        {
            let alerts = token.get(path).expect(200).await;
            let of: Vec<_> = alerts.as_array().unwrap().iter().map(|alert| uuid_of(&alert["server_id"])).collect();
            assert_eq!(of, [scene.db], "{scope} {path}");
        }
        let summary = token.get("/alerts/summary").expect_answer(200).await;
        assert!(summary.text.contains(&scene.db.to_string()), "{summary}");
        assert!(!summary.text.contains(&scene.web.to_string()), "{summary}");
        let foreign = scene.service.client.get(format!("/alerts?server_id={}", scene.web));
        let foreign = foreign.bearer(&scene.owner.token).expect(200).await;
        let path = format!("/alerts/{}", text_of(&foreign[0]["id"]));
        token.get(&path).expect_error(404, "not_found").await;
    }
}

#[actix_web::test]
async fn a_tag_that_is_given_or_removed_counts_at_once() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"tag": "db"}})).await;
    let path = format!("/servers/{}", scene.web);
    token.get(&path).expect_error(404, "not_found").await;

    scene.tag(scene.web, &["web", "db"]).await;
    token.get(&path).expect(200).await;
    assert_eq!(token.servers().await, ["db-1", "web-1"]);

    scene.tag(scene.web, &["web"]).await;
    token.get(&path).expect_error(404, "not_found").await;
    assert_eq!(token.servers().await, ["db-1"]);
}

#[actix_web::test]
async fn a_token_is_for_shared_servers_as_far_as_the_grant_goes() {
    let scene = Scene::start().await;
    let bob = scene.service.register("bob").await;
    let shared = scene.service.server(&bob, "shared").await;
    let of_bob =
        |method: &str, path: String| scene.service.client.call(method.parse().unwrap(), &path).bearer(&bob.token);
    of_bob("PUT", format!("/servers/{shared}")).json(json!({"tags": ["db"]})).expect(200).await;
    let grant = json!({"subject": {"user_id": scene.owner.id}, "scope": {"server_id": shared}, "role": "responder"});
    let grant = of_bob("POST", "/grants".to_owned()).json(grant).expect(201).await;

    let by_tag = scene.token(json!({"role": "manager", "scope": {"tag": "db"}})).await;
    let by_id = scene.token(json!({"role": "viewer", "scope": {"server_ids": [shared]}})).await;

    assert_eq!(by_tag.servers().await, ["db-1", "shared"]);
    assert_eq!(by_id.servers().await, ["shared"]);
    let path = format!("/servers/{shared}");
    assert_eq!(by_tag.get(&path).expect(200).await["role"], "responder");
    assert_eq!(by_id.get(&path).expect(200).await["role"], "viewer");
    let key = json!({"server_id": shared, "name": "agent"});
    by_tag.post("/api-keys", key).expect_error(403, "forbidden").await;
    let silence = json!({"server_id": shared, "reason": "work", "starts_at": "2098-01-01T00:00:00Z", "ends_at": "2098-01-02T00:00:00Z"});
    by_tag.post("/alerts/silences", silence.clone()).expect(201).await;
    by_id.post("/alerts/silences", silence).expect_error(403, "forbidden").await;

    of_bob("DELETE", format!("/grants/{}", text_of(&grant["id"]))).expect(200).await;
    by_id.get(&path).expect_error(404, "not_found").await;
    assert_eq!(by_tag.servers().await, ["db-1"]);
}

#[actix_web::test]
async fn what_is_for_many_servers_needs_a_scope_as_wide() {
    let scene = Scene::start().await;
    let silence = |reach: Value| {
        let mut body =
            json!({"reason": "work", "starts_at": "2098-01-01T00:00:00Z", "ends_at": "2098-01-02T00:00:00Z"});
        body.as_object_mut().unwrap().extend(reach.as_object().unwrap().clone());
        body
    };
    let by_tag = scene.token(json!({"role": "responder", "scope": {"tag": "db"}})).await;
    let all = scene.token(json!({"role": "responder", "scope": {"all": true}})).await;
    let viewer = scene.token(json!({"role": "viewer", "scope": {"all": true}})).await;

    let made = by_tag.post("/alerts/silences", silence(json!({"tag": "db"}))).expect(201).await;
    for reach in [json!({"tag": "web"}), json!({"all": true})] {
        by_tag.post("/alerts/silences", silence(reach.clone())).expect_error(403, "token_not_allowed").await;
        viewer.post("/alerts/silences", silence(reach.clone())).expect_error(403, "token_not_allowed").await;
        all.post("/alerts/silences", silence(reach)).expect(201).await;
    }
    by_tag.post("/alerts/silences", silence(json!({"server_id": scene.web}))).expect_error(404, "not_found").await;
    let path = format!("/alerts/silences/{}", text_of(&made["id"]));
    let change = |body: Value| scene.service.client.put(&path).bearer(&by_tag.text).json(body);
    change(json!({"all": true, "tag": null})).expect_error(403, "token_not_allowed").await;
    change(json!({"reason": "more work"})).expect(200).await;

    // The token sees what it could have made, and nothing wider.
    assert_eq!(by_tag.get("/alerts/silences").expect(200).await.as_array().unwrap().len(), 1);
    assert_eq!(all.get("/alerts/silences").expect(200).await.as_array().unwrap().len(), 3);
}

#[actix_web::test]
async fn a_batch_runs_on_the_servers_of_the_scope_and_belongs_to_its_token() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"role": "operator", "rights": ["commands"], "scope": {"tag": "db"}})).await;
    let other = scene.token(json!({"role": "operator", "scope": {"all": true}})).await;
    let batch = |selection: Value| {
        let mut body = json!({"command": "true"});
        body.as_object_mut().unwrap().extend(selection.as_object().unwrap().clone());
        body
    };

    let both = json!({"server_ids": [scene.db, scene.web]});
    token.post("/commands", batch(both)).expect_error(404, "not_found").await;
    token.post("/commands", batch(json!({"tag": "web"}))).expect_error(400, "bad_request").await;
    let made = token.post("/commands", batch(json!({"tag": "db"}))).expect(201).await;

    let results = made["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|result| uuid_of(&result["server_id"])).collect::<Vec<_>>(), [scene.db]);
    let path = format!("/commands/batches/{}", text_of(&made["id"]));
    token.get(&path).expect(200).await;
    assert_eq!(token.get("/commands/batches").expect(200).await.as_array().unwrap().len(), 1);
    other.get(&path).expect_error(404, "not_found").await;
    assert_eq!(other.get("/commands/batches").expect(200).await, json!([]));
    scene.service.client.get(&path).bearer(&scene.owner.token).expect(200).await;
}

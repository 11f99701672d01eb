//! Teams: users who get grants together.

use serde_json::{Value, json};

use super::Shared;
use crate::support::{keys_of, text_of};

async fn team(shared: &Shared, name: &str) -> Value {
    shared.by_owner("POST", "/teams").json(json!({"name": name})).expect(201).await
}

fn path(team: &Value, after: &str) -> String {
    format!("/teams/{}{after}", text_of(&team["id"]))
}

#[actix_web::test]
async fn members_have_what_is_granted_to_their_team_while_they_are_in_it() {
    let shared = Shared::start().await;
    let ops = team(&shared, "ops").await;
    assert_eq!(keys_of(&ops), ["created_at", "created_by", "id", "issuer", "members", "name"]);
    let body = json!({"subject": {"team_id": ops["id"]}, "scope": {"all": true}, "role": "viewer"});
    let grant = shared.by_owner("POST", "/grants").json(body).expect(201).await;
    assert_eq!(grant["subject"]["team_name"], "ops");
    let server = shared.path("/servers", "");
    shared.by_guest("GET", &server).expect(404).await;

    let added = shared.by_owner("PUT", &path(&ops, "/members/Guest")).expect(200).await;
    assert_eq!(added["members"][0]["id"], json!(shared.guest.id));
    shared.by_guest("GET", &server).expect(200).await;
    let access = shared.by_owner("GET", &shared.path("/servers", "/access")).expect(200).await;
    assert_eq!(access[1]["grants"][0]["team"], json!({"id": ops["id"], "name": "ops"}));

    // Members may leave.
    let member = path(&ops, &format!("/members/{}", shared.guest.id));
    shared.by_guest("DELETE", &member).expect(200).await;
    shared.by_guest("GET", &server).expect(404).await;
    shared.by_owner("DELETE", &member).expect(404).await;

    shared.by_owner("PUT", &member).expect(200).await;
    shared.by_owner("DELETE", &path(&ops, "")).expect(200).await;
    shared.by_guest("GET", &server).expect(404).await;
    assert_eq!(shared.by_owner("GET", "/grants").expect(200).await, json!([]));
}

#[actix_web::test]
async fn a_team_is_managed_by_its_creator_and_by_administrators() {
    let shared = Shared::start().await;
    let stranger = shared.site.service.register("stranger").await;
    let dev = shared.by_guest("POST", "/teams").json(json!({"name": "dev"})).expect(201).await;
    shared.by_guest("PUT", &path(&dev, "/members/stranger")).expect(200).await;
    let rename = json!({"name": "Developers"});

    // The member sees it, and may not change it.
    assert_eq!(shared.by(&stranger, "GET", "/teams").expect(200).await[0]["name"], "dev");
    shared.by(&stranger, "PUT", &path(&dev, "")).json(rename.clone()).expect_error(403, "forbidden").await;
    shared.by(&stranger, "PUT", &path(&dev, "/members/owner")).expect_error(403, "forbidden").await;
    shared.by(&stranger, "DELETE", &path(&dev, "/members/guest")).expect_error(403, "forbidden").await;
    // The owner of the site is the administrator of the service.
    assert_eq!(shared.by_owner("PUT", &path(&dev, "")).json(rename).expect(200).await["name"], "Developers");
    shared.by_owner("DELETE", &path(&dev, "/members/stranger")).expect(200).await;
    // Nobody else knows of it.
    shared.by(&stranger, "PUT", &path(&dev, "")).json(json!({"name": "x"})).expect_error(404, "not_found").await;
    assert_eq!(shared.by(&stranger, "GET", "/teams").expect(200).await, json!([]));
    let body = json!({"subject": {"team_id": dev["id"]}, "scope": {"all": true}, "role": "viewer"});
    let fault = ("body", "subject.team_id", "value_error.unknown_subject");
    shared.by(&stranger, "POST", "/grants").json(body).expect_faults(422, &[fault]).await;
}

#[actix_web::test]
async fn no_two_teams_have_the_same_name_in_any_case() {
    let shared = Shared::start().await;
    team(&shared, "Ops").await;
    let other = team(&shared, "dev").await;

    shared.by_guest("POST", "/teams").json(json!({"name": "oPS"})).expect_error(400, "bad_request").await;
    shared.by_owner("PUT", &path(&other, "")).json(json!({"name": "OPS"})).expect_error(400, "bad_request").await;
    shared.by_owner("PUT", &path(&other, "")).json(json!({"name": "DEV"})).expect(200).await;
    shared.by_owner("PUT", &path(&other, "/members/nobody")).expect_error(404, "not_found").await;
    shared.site.service.client.get("/teams").expect_error(401, "not_authenticated").await;
}

#[actix_web::test]
async fn the_audit_log_tells_what_becomes_of_a_team() {
    let shared = Shared::start().await;
    let ops = team(&shared, "ops").await;
    shared.by_owner("PUT", &path(&ops, "/members/guest")).expect(200).await;
    shared.by_owner("PUT", &path(&ops, "/members/guest")).expect(200).await;
    shared.by_owner("PUT", &path(&ops, "")).json(json!({"name": "sre"})).expect(200).await;
    shared.by_owner("DELETE", &path(&ops, "/members/guest")).expect(200).await;
    shared.by_owner("DELETE", &path(&ops, "")).expect(200).await;

    let entries = shared.by_owner("GET", "/audit?action=team.").expect(200).await;

    let actions: Vec<String> = entries.as_array().unwrap().iter().map(|entry| text_of(&entry["action"])).collect();
    assert_eq!(actions, ["team.delete", "team.member_remove", "team.update", "team.member_add", "team.create"]);
    assert_eq!(entries[2]["detail"]["name"], json!({"from": "ops", "to": "sre"}));
    assert_eq!(entries[3]["detail"]["user"], "guest");
}

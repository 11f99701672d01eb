//! What the audit log says of grants, and who reads it.

use serde_json::json;

use super::Shared;
use crate::support::text_of;

#[actix_web::test]
async fn the_audit_log_tells_every_grant() {
    let shared = Shared::start().await;
    let grant = shared.grant(json!({"tag": "db"}), "operator", json!(["logs"])).await;
    shared.end(&grant).await;

    let entries = shared.by_owner("GET", "/audit?action=grant.").expect(200).await;

    let actions: Vec<String> = entries.as_array().unwrap().iter().map(|entry| text_of(&entry["action"])).collect();
    assert_eq!(actions, ["grant.delete", "grant.create"]);
    let detail = json!({
        "subject": {"user": "guest", "user_id": shared.guest.id}, "role": "operator", "rights": ["logs"],
        "scope": {"tag": "db"},
    });
    assert_eq!((&entries[1]["detail"], &entries[1]["target"]), (&detail, &grant["id"]));
}

#[actix_web::test]
async fn the_audit_log_lists_grants_that_end_with_a_team_a_server_or_an_account() {
    let shared = Shared::start().await;
    let team = shared.by_owner("POST", "/teams").json(json!({"name": "ops"})).expect(201).await;
    let of_team = json!({"subject": {"team_id": team["id"]}, "scope": {"tag": "db"}, "role": "viewer"});
    let by_team = shared.by_owner("POST", "/grants").json(of_team).expect(201).await;
    let of_server = shared.grant_server("operator", json!(["logs"])).await;
    let of_all = shared.grant(json!({"all": true}), "viewer", json!([])).await;

    shared.by_owner("DELETE", &format!("/teams/{}", text_of(&team["id"]))).expect(200).await;
    shared.by_owner("DELETE", &shared.path("/servers", "")).expect(200).await;
    shared.by_owner("DELETE", &format!("/users/{}", shared.guest.id)).expect(200).await;

    let entries = shared.by_owner("GET", "/audit?action=grant.delete").expect(200).await;
    let told: Vec<_> = entries.as_array().unwrap().iter().map(|entry| (&entry["target"], &entry["detail"])).collect();
    let guest = json!({"user": "guest", "user_id": shared.guest.id});
    let all = json!({"subject": guest, "role": "viewer", "rights": [], "scope": {"all": true}});
    let server = json!({"subject": guest, "role": "operator", "rights": ["logs"]});
    let subject = json!({"team": "ops", "team_id": team["id"]});
    let tag = json!({"subject": subject, "role": "viewer", "rights": [], "scope": {"tag": "db"}});
    assert_eq!(told, [(&of_all["id"], &all), (&of_server["id"], &server), (&by_team["id"], &tag)]);
    assert_eq!(
        (&entries[1]["server_name"], &entries[1]["server_id"]),
        (&json!("web-1"), &json!(shared.site.server_id))
    );
}

#[actix_web::test]
async fn a_manager_reads_the_audit_entries_of_the_server() {
    let shared = Shared::start().await;
    let path = shared.path("/servers", "");
    shared.by_owner("PUT", &path).json(json!({"name": "web-9"})).expect(200).await;
    let log = format!("/audit?server_id={}&action=server.", shared.site.server_id);
    let all = shared.by_owner("GET", &log).expect(200).await;
    assert_eq!(all.as_array().unwrap().len(), 2);

    let grant = shared.grant_server("operator", json!(null)).await;
    assert_eq!(shared.by_guest("GET", &log).expect(200).await, json!([]));
    shared.end(&grant).await;
    shared.grant_server("manager", json!([])).await;
    assert_eq!(shared.by_guest("GET", &log).expect(200).await, all);
}

#[actix_web::test]
async fn what_a_guest_writes_on_a_server_stands_in_its_owners_audit_log() {
    let shared = Shared::start().await;
    shared.grant_server("responder", json!(null)).await;
    let note = json!({ "kind": "note", "text": "by a guest", "server_ids": [shared.site.server_id] });

    shared.by_guest("POST", "/events").json(note).expect(201).await;

    let entries = shared.by_owner("GET", "/audit?action=event.create").expect(200).await;
    let found = (&entries[0]["username"], &entries[0]["server_id"]);
    assert_eq!(found, (&json!(shared.guest.username), &json!(shared.site.server_id)));
    let of_the_guest = shared.by_guest("GET", "/audit?action=event.create").expect(200).await;
    assert_eq!(of_the_guest, json!([]));
}

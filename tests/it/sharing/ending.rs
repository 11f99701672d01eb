//! Who may end a grant.

use serde_json::{Value, json};

use super::Shared;
use crate::support::text_of;

#[actix_web::test]
async fn a_grant_is_ended_by_those_whom_it_concerns() {
    let shared = Shared::start().await;
    let stranger = shared.site.service.register("stranger").await;
    let helper = shared.site.service.register("helper").await;
    let path = |grant: &Value| format!("/grants/{}", text_of(&grant["id"]));

    let grant = shared.grant_server("viewer", json!([])).await;
    shared.by(&stranger, "DELETE", &path(&grant)).expect_error(404, "not_found").await;
    shared.by_guest("DELETE", &path(&grant)).expect(200).await;
    shared.by_guest("DELETE", &path(&grant)).expect_error(404, "not_found").await;

    // Somebody else who sees the server sees the grants of its managers, too.
    let grant = shared.grant_server("manager", json!([])).await;
    let body =
        json!({"subject": {"user_id": helper.id}, "scope": {"server_id": shared.site.server_id}, "role": "viewer"});
    let given = shared.by_guest("POST", "/grants").json(body).expect(201).await;
    assert_eq!(given["owner"]["username"], "owner");
    assert_eq!(given["giver"]["username"], "guest");
    shared.by(&helper, "DELETE", &path(&grant)).expect_error(403, "forbidden").await;
    // It outlives the role of who gave it.
    shared.end(&grant).await;
    shared.by(&helper, "GET", &shared.path("/servers", "")).expect(200).await;
    shared.by_owner("DELETE", &path(&given)).expect(200).await;
    shared.by(&helper, "GET", &shared.path("/servers", "")).expect(404).await;
}

#[actix_web::test]
async fn a_caller_that_may_not_end_a_grant_is_forbidden_where_a_list_shows_it_and_finds_nothing_elsewhere() {
    let shared = Shared::start().await;
    let path = shared.path("/servers", "");
    shared.by_owner("PUT", &path).json(json!({"tags": ["db"]})).expect(200).await;
    let mut accounts = Vec::new();
    for name in ["chief", "viewer", "member", "stranger"] {
        accounts.push(shared.site.service.register(name).await);
    }
    let team = shared.by_owner("POST", "/teams").json(json!({"name": "ops"})).expect(201).await;
    let of_team = format!("/teams/{}/members/member", text_of(&team["id"]));
    shared.by_owner("PUT", &of_team).expect(200).await;
    let (one, tag, all) = (json!({"server_id": shared.site.server_id}), json!({"tag": "db"}), json!({"all": true}));
    let other_tag = json!({"tag": "no server has it"});
    let grants = [
        (json!({"username": "chief"}), &tag, "manager"),
        (json!({"username": "chief"}), &all, "viewer"),
        (json!({"username": "viewer"}), &tag, "viewer"),
        (json!({"username": "guest"}), &one, "viewer"),
        (json!({"username": "guest"}), &tag, "operator"),
        (json!({"username": "guest"}), &other_tag, "manager"),
        (json!({"team_id": team["id"]}), &all, "viewer"),
    ];
    let mut ids = Vec::new();
    for (subject, scope, role) in grants {
        let body = json!({"subject": subject, "scope": scope, "role": role});
        ids.push(text_of(&shared.by_owner("POST", "/grants").json(body).expect(201).await["id"]));
    }
    // What each may not end: F for forbidden, N for not found. The rest they may end.
    let expected = [("chief", "__F_FNF"), ("viewer", "FF_NNNN"), ("member", "FFNNNNF"), ("stranger", "NNNNNNN")];

    for (account, (name, refusals)) in accounts.iter().zip(expected) {
        let mut shown = shared.by(account, "GET", "/grants").expect(200).await.to_string();
        let access = shared.by(account, "GET", &shared.path("/servers", "/access")).send().await;
        shown.push_str(&access.text);
        for (place, (id, refusal)) in ids.iter().zip(refusals.chars()).enumerate() {
            let call = || shared.by(account, "DELETE", &format!("/grants/{id}"));
            match refusal {
                'F' => call().expect_error(403, "forbidden").await,
                'N' => call().expect_error(404, "not_found").await,
                _ => continue,
            };
            assert_eq!(shown.contains(id), refusal == 'F', "grant {place} as {name}: {shown}");
        }
    }
}

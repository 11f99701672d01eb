//! Grants: what somebody else than the owner sees of a server, and may do to it.

mod alerts;
mod audit;
mod ending;
mod lists;
mod notifications;
mod sockets;
mod teams;

use serde_json::{Value, json};
use signalbox::config::Config;
use uuid::Uuid;

use crate::support::rest::Call;
use crate::support::site::Site;
use crate::support::{Account, keys_of, text_of, uuid_of};

/// A site whose owner has a guest.
pub struct Shared {
    pub site: Site,
    pub guest: Account,
}

impl Shared {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        let site = Site::start_with(adjust).await;
        let guest = site.service.register("guest").await;
        Self { site, guest }
    }

    /// The owner grants this. Returns the grant.
    pub async fn grant(&self, scope: Value, role: &str, rights: Value) -> Value {
        let body = json!({"subject": {"username": "guest"}, "scope": scope, "role": role, "rights": rights});
        self.by_owner("POST", "/grants").json(body).expect(201).await
    }

    /// The owner grants this on the server.
    pub async fn grant_server(&self, role: &str, rights: Value) -> Value {
        self.grant(json!({"server_id": self.site.server_id}), role, rights).await
    }

    pub async fn end(&self, grant: &Value) {
        self.by_owner("DELETE", &format!("/grants/{}", text_of(&grant["id"]))).expect(200).await;
    }

    pub fn by_owner(&self, method: &str, path: &str) -> Call {
        self.by(&self.site.owner, method, path)
    }

    pub fn by_guest(&self, method: &str, path: &str) -> Call {
        self.by(&self.guest, method, path)
    }

    pub fn by(&self, account: &Account, method: &str, path: &str) -> Call {
        self.site.service.client.call(method.parse().unwrap(), path).bearer(&account.token)
    }

    pub fn path(&self, before: &str, after: &str) -> String {
        format!("{before}/{}{after}", self.site.server_id)
    }
}

#[actix_web::test]
async fn a_grant_tells_all_about_itself() {
    let shared = Shared::start().await;

    let grant = shared.grant_server("operator", json!(["logs", "commands"])).await;

    let fields = ["created_at", "giver", "id", "owner", "rights", "role", "scope", "subject"];
    assert_eq!(keys_of(&grant), fields);
    let owner = json!({"id": shared.site.owner.id, "username": "owner"});
    assert_eq!((&grant["owner"], &grant["giver"]), (&owner, &owner));
    let subject = json!({"user_id": shared.guest.id, "username": "guest", "team_id": null, "team_name": null});
    assert_eq!(grant["subject"], subject);
    let scope = json!({"server_id": shared.site.server_id, "server_name": "web-1", "tag": null, "all": false});
    assert_eq!(grant["scope"], scope);
    assert_eq!((&grant["role"], &grant["rights"]), (&json!("operator"), &json!(["commands", "logs"])));
    for list in
        [shared.by_owner("GET", "/grants").expect(200).await, shared.by_guest("GET", "/grants").expect(200).await]
    {
        assert_eq!(list, json!([grant]));
    }
    let everything = shared.grant(json!({"all": true}), "operator", json!(null)).await;
    assert_eq!(everything["rights"], json!(["containers", "commands", "logs", "terminal"]));
}

#[actix_web::test]
async fn a_server_shows_its_owner_and_what_the_caller_may_do() {
    let shared = Shared::start().await;
    let path = shared.path("/servers", "");
    let own = shared.by_owner("GET", &path).expect(200).await;
    assert_eq!(own["owner"], json!({"id": shared.site.owner.id, "username": "owner"}));
    assert_eq!((&own["role"], own["rights"].as_array().unwrap().len()), (&json!("owner"), 4));
    shared.by_guest("GET", &path).expect(404).await;

    shared.grant_server("viewer", json!([])).await;
    shared.grant(json!({"all": true}), "operator", json!(["logs"])).await;

    for server in [
        shared.by_guest("GET", &path).expect(200).await,
        shared.by_guest("GET", "/servers").expect(200).await[0].clone(),
    ] {
        assert_eq!(server["owner"], own["owner"]);
        assert_eq!((&server["role"], &server["rights"]), (&json!("operator"), &json!(["logs"])));
    }
    assert_eq!(shared.by_guest("GET", "/servers?role=owner").expect(200).await, json!([]));
    shared.by_guest("GET", "/servers?role=viewer").expect(422).await;
}

/// What each role may do to the server. 400 is the answer of an agent that is offline: the right was there.
#[actix_web::test]
async fn each_role_may_do_its_own_and_what_the_ones_before_it_may() {
    let shared = Shared::start().await;
    let id = shared.site.server_id;
    let rename = json!({"name": "web-9"});
    let command = json!({"command": "true"});
    let asks: Vec<(&str, String, Value, [u16; 5])> = vec![
        ("GET", format!("/servers/{id}"), Value::Null, [200; 5]),
        ("GET", format!("/servers/{id}/events"), Value::Null, [200; 5]),
        ("GET", format!("/servers/{id}/availability"), Value::Null, [200; 5]),
        ("GET", format!("/servers/{id}/access"), Value::Null, [200; 5]),
        ("GET", format!("/metrics/{id}/history"), Value::Null, [200; 5]),
        ("GET", format!("/metrics/{id}/names"), Value::Null, [200; 5]),
        ("GET", format!("/docker/{id}/containers"), Value::Null, [400; 5]),
        // viewer, responder, operator with logs alone, operator with all the others, manager
        ("GET", format!("/logs/{id}"), Value::Null, [403, 403, 400, 403, 400]),
        ("GET", format!("/docker/{id}/containers/web/logs"), Value::Null, [403, 403, 400, 403, 400]),
        ("POST", format!("/docker/{id}/containers/web/start"), Value::Null, [403, 403, 403, 400, 400]),
        ("GET", format!("/commands/{id}"), Value::Null, [403, 403, 403, 200, 200]),
        ("POST", format!("/commands/{id}"), command.clone(), [403, 403, 403, 400, 400]),
        ("PUT", format!("/servers/{id}"), rename, [403, 403, 403, 403, 200]),
        ("POST", "/api-keys".to_owned(), json!({"server_id": id, "name": "k"}), [403, 403, 403, 403, 201]),
        (
            "POST",
            "/grants".to_owned(),
            json!({"subject": {"username": "third"}, "scope": {"server_id": id}, "role": "manager"}),
            [403, 403, 403, 403, 201],
        ),
        ("DELETE", format!("/servers/{id}"), Value::Null, [403; 5]),
    ];
    shared.site.service.register("third").await;
    let roles = [
        ("viewer", json!([])),
        ("responder", json!([])),
        ("operator", json!(["logs"])),
        ("operator", json!(["containers", "commands", "terminal"])),
        ("manager", json!([])),
    ];
    for (place, (role, rights)) in roles.into_iter().enumerate() {
        let grant = shared.grant_server(role, rights).await;
        for (method, path, body, expected) in &asks {
            let call = shared.by_guest(method, path);
            let call = if body.is_null() { call } else { call.json(body.clone()) };
            let answer = call.send().await;
            assert_eq!(answer.status, expected[place], "{role} {method} {path}: {answer}");
        }
        shared.end(&grant).await;
        for (method, path, body, _) in &asks {
            let call = shared.by_guest(method, path);
            let call = if body.is_null() { call } else { call.json(body.clone()) };
            let answer = call.send().await;
            assert_eq!(answer.status, 404, "nobody {method} {path}: {answer}");
        }
    }
}

#[actix_web::test]
async fn a_tag_is_granted_for_servers_that_get_it_later_and_until_they_lose_it() {
    let shared = Shared::start().await;
    let path = shared.path("/servers", "");
    shared.grant(json!({"tag": "db"}), "viewer", json!([])).await;
    shared.by_guest("GET", &path).expect(404).await;

    shared.by_owner("PUT", &path).json(json!({"tags": ["db", "eu"]})).expect(200).await;
    shared.by_guest("GET", &path).expect(200).await;
    let other = json!({"name": "db-2", "host": "192.0.2.11", "tags": ["db"]});
    let other = uuid_of(&shared.by_owner("POST", "/servers").json(other).expect(201).await["id"]);
    shared.by_guest("GET", &format!("/servers/{other}")).expect(200).await;

    shared.by_owner("PUT", &path).json(json!({"tags": ["eu"]})).expect(200).await;
    shared.by_guest("GET", &path).expect(404).await;
}

#[actix_web::test]
async fn a_grant_of_all_servers_is_for_servers_that_are_made_later_too() {
    let shared = Shared::start().await;
    let grant = shared.grant(json!({"all": true}), "viewer", json!([])).await;
    let later = json!({"name": "later", "host": "192.0.2.12"});
    let later = uuid_of(&shared.by_owner("POST", "/servers").json(later).expect(201).await["id"]);

    shared.by_guest("GET", &format!("/servers/{later}")).expect(200).await;

    shared.end(&grant).await;
    shared.by_guest("GET", &format!("/servers/{later}")).expect(404).await;
}

#[actix_web::test]
async fn a_manager_who_removes_the_tag_of_their_own_grant_gets_the_last_answer() {
    let shared = Shared::start().await;
    let path = shared.path("/servers", "");
    shared.by_owner("PUT", &path).json(json!({"tags": ["db"]})).expect(200).await;
    shared.grant(json!({"tag": "db"}), "manager", json!([])).await;

    let changed = shared.by_guest("PUT", &path).json(json!({"tags": []})).expect(200).await;

    assert_eq!((&changed["tags"], &changed["role"]), (&json!([]), &json!("manager")));
    shared.by_guest("GET", &path).expect(404).await;
}

#[actix_web::test]
async fn a_grant_names_one_subject_one_scope_and_the_rights_of_an_operator() {
    let shared = Shared::start().await;
    let team = Uuid::now_v7();
    let (subject, scope) = (json!({"username": "guest"}), json!({"all": true}));
    let bodies = [
        (json!({"subject": {}, "scope": scope, "role": "viewer"}), ("body", "subject", "value_error.subject")),
        (
            json!({"subject": {"username": "guest", "team_id": team}, "scope": scope, "role": "viewer"}),
            ("body", "subject", "value_error.subject"),
        ),
        (
            json!({"subject": {"username": "nobody"}, "scope": scope, "role": "viewer"}),
            ("body", "subject.username", "value_error.unknown_subject"),
        ),
        (
            json!({"subject": {"user_id": team}, "scope": scope, "role": "viewer"}),
            ("body", "subject.user_id", "value_error.unknown_subject"),
        ),
        (
            json!({"subject": {"team_id": team}, "scope": scope, "role": "viewer"}),
            ("body", "subject.team_id", "value_error.unknown_subject"),
        ),
        (
            json!({"subject": {"username": "OWNER"}, "scope": scope, "role": "viewer"}),
            ("body", "subject.username", "value_error.owner"),
        ),
        (
            json!({"subject": subject, "scope": {"all": false}, "role": "viewer"}),
            ("body", "scope", "value_error.reach"),
        ),
        (
            json!({"subject": subject, "scope": {"all": true, "tag": "db"}, "role": "viewer"}),
            ("body", "scope", "value_error.reach"),
        ),
        (json!({"subject": subject, "scope": scope, "role": "owner"}), ("body", "role", "type_error.enum")),
        (
            json!({"subject": subject, "scope": scope, "role": "operator", "rights": []}),
            ("body", "rights", "value_error.list.min_items"),
        ),
        (
            json!({"subject": subject, "scope": scope, "role": "operator", "rights": ["root"]}),
            ("body", "rights.0", "type_error.enum"),
        ),
        (
            json!({"subject": subject, "scope": scope, "role": "viewer", "rights": ["logs"]}),
            ("body", "rights", "value_error.rights"),
        ),
    ];

    for (body, fault) in bodies {
        shared.by_owner("POST", "/grants").json(body).expect_faults(422, &[fault]).await;
    }
    let unknown = json!({"subject": {"username": "nobody"}, "scope": scope, "role": "viewer"});
    let refusal = shared.by_owner("POST", "/grants").json(unknown).expect(422).await;
    assert_eq!(refusal["detail"][0]["loc"], json!(["body", "subject", "username"]));
    let foreign = json!({"subject": subject, "scope": {"server_id": Uuid::now_v7()}, "role": "viewer"});
    shared.by_owner("POST", "/grants").json(foreign).expect_error(404, "not_found").await;
    shared.site.service.client.get("/grants").expect_error(401, "not_authenticated").await;
}

#[actix_web::test]
async fn a_server_tells_who_has_access_and_why() {
    let shared = Shared::start().await;
    let helper = shared.site.service.register("helper").await;
    let grant = shared.grant(json!({"all": true}), "operator", json!(["logs"])).await;
    let body = json!({"subject": {"user_id": helper.id}, "scope": {"all": true}, "role": "viewer"});
    shared.by_owner("POST", "/grants").json(body).expect(201).await;
    let path = shared.path("/servers", "/access");
    let people = |list: &Value| -> Vec<(String, String)> {
        let list = list.as_array().unwrap();
        list.iter().map(|one| (text_of(&one["user"]["username"]), text_of(&one["role"]))).collect()
    };
    let who = |name: &str, role: &str| (name.to_owned(), role.to_owned());

    let all = shared.by_owner("GET", &path).expect(200).await;
    assert_eq!(people(&all), [who("owner", "owner"), who("guest", "operator"), who("helper", "viewer")]);
    assert_eq!((&all[0]["grants"], &all[0]["rights"][3]), (&json!([]), &json!("terminal")));
    let scope = json!({"server_id": null, "server_name": null, "tag": null, "all": true});
    let means = json!({"id": grant["id"], "scope": scope, "role": "operator", "rights": ["logs"], "team": null});
    assert_eq!(all[1]["grants"], json!([means]));
    // A viewer sees whom to ask, and themselves.
    let some = shared.by(&helper, "GET", &path).expect(200).await;
    assert_eq!(people(&some), [who("owner", "owner"), who("helper", "viewer")]);
    let second = shared.by_owner("GET", &format!("{path}?limit=1&offset=1")).expect_answer(200).await;
    assert_eq!((people(&second.json()), second.header("X-Total-Count")), (vec![who("guest", "operator")], "3"));
}

#[actix_web::test]
async fn the_administrator_has_no_role_on_servers_of_others() {
    let shared = Shared::start().await;
    // The first account of a service is its administrator: here the owner.
    let theirs = shared.site.service.server(&shared.guest, "theirs").await;

    shared.by_owner("GET", &format!("/servers/{theirs}")).expect_error(404, "not_found").await;
    shared.by_owner("GET", &format!("/servers/{theirs}/access")).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn grants_and_teams_have_a_quota() {
    let mut site = Site::start_with(|config| (config.quotas.grants, config.quotas.teams) = (1, 1)).await;
    let guest = site.service.register("guest").await;
    site.server_id = site.other_server().await.0;
    let shared = Shared { site, guest };

    shared.grant_server("viewer", json!([])).await;
    let body = json!({"subject": {"username": "guest"}, "scope": {"all": true}, "role": "viewer"});
    shared.by_owner("POST", "/grants").json(body).expect_error(400, "quota_exceeded").await;
    shared.by_owner("POST", "/teams").json(json!({"name": "ops"})).expect(201).await;
    shared.by_owner("POST", "/teams").json(json!({"name": "dev"})).expect_error(400, "quota_exceeded").await;
}

#[actix_web::test]
async fn a_disabled_account_is_not_among_those_who_are_notified() {
    let shared = Shared::start().await;
    shared.grant_server("viewer", json!([])).await;
    let (owner_id, guest_id) = (shared.site.owner.id, shared.guest.id);
    let viewers = || shared.site.service.state.accounts.access.viewers(owner_id, shared.site.server_id, &[]);
    assert_eq!(viewers(), [owner_id, guest_id]);

    let path = format!("/users/{guest_id}");
    shared.by_owner("PUT", &path).json(json!({"disabled": true})).expect(200).await;
    assert_eq!(viewers(), [owner_id]);
    shared.by_owner("PUT", &path).json(json!({"disabled": false})).expect(200).await;
    assert_eq!(viewers(), [owner_id, guest_id]);
}

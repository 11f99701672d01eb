//! `/tokens`: tokens for programs. Which operation each may use is in `rights`.

mod bounds;
mod scopes;
mod sockets;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::rest::Call;
use crate::support::{Account, TestService, assert_timestamp, eventually, keys_of, text_of, uuid_of};

/// A service with an account that has servers, some of them with a tag.
struct Scene {
    service: TestService,
    owner: Account,
    /// Has the tag `web`.
    web: Uuid,
    /// Has the tag `db`.
    db: Uuid,
}

impl Scene {
    async fn start() -> Self {
        Self::on(TestService::start().await).await
    }

    async fn on(service: TestService) -> Self {
        let owner = service.register("owner").await;
        let (web, db) = (service.server(&owner, "web-1").await, service.server(&owner, "db-1").await);
        let scene = Self { service, owner, web, db };
        scene.tag(web, &["web"]).await;
        scene.tag(db, &["db"]).await;
        scene
    }

    async fn tag(&self, server_id: Uuid, tags: &[&str]) {
        let path = format!("/servers/{server_id}");
        self.service.client.put(path).bearer(&self.owner.token).json(json!({"tags": tags})).expect(200).await;
    }

    fn create(&self, body: Value) -> Call {
        self.service.client.post("/tokens").bearer(&self.owner.token).json(body)
    }

    /// A token with these fields.
    async fn token(&self, body: Value) -> Token<'_> {
        let mut all = json!({"name": "program"});
        all.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let made = self.create(all).expect(201).await;
        Token { scene: self, id: uuid_of(&made["id"]), text: text_of(&made["token"]) }
    }

    /// A token that expires in ten seconds; none where the machine pauses until then.
    async fn short_token(&self) -> Option<Token<'_>> {
        let expires_at = Timestamp::now().plus_millis(10_000).to_string();
        let body = json!({"name": "program", "scope": {"all": true}, "expires_at": expires_at});
        let answer = self.create(body).send().await;
        assert!([201, 422].contains(&answer.status), "{answer}");
        let made = (answer.status == 201).then(|| answer.json())?;
        Some(Token { scene: self, id: uuid_of(&made["id"]), text: text_of(&made["token"]) })
    }

    async fn listed(&self) -> Value {
        self.service.client.get("/tokens").bearer(&self.owner.token).expect(200).await
    }

    async fn audit(&self) -> Vec<Value> {
        let entries = self.service.client.get("/audit").bearer(&self.owner.token).expect(200).await;
        entries.as_array().unwrap().clone()
    }
}

/// A program with a token.
struct Token<'a> {
    scene: &'a Scene,
    id: Uuid,
    text: String,
}

impl Token<'_> {
    fn get(&self, path: &str) -> Call {
        self.scene.service.client.get(path).bearer(&self.text)
    }

    fn post(&self, path: &str, body: Value) -> Call {
        self.scene.service.client.post(path).bearer(&self.text).json(body)
    }

    async fn revoke(&self) {
        let path = format!("/tokens/{}", self.id);
        self.scene.service.client.delete(path).bearer(&self.scene.owner.token).expect(200).await;
    }

    /// The names of the servers that it sees.
    async fn servers(&self) -> Vec<String> {
        let listed = self.get("/servers").expect_answer(200).await;
        let names: Vec<String> =
            listed.json().as_array().unwrap().iter().map(|server| text_of(&server["name"])).collect();
        assert_eq!(listed.header("X-Total-Count"), names.len().to_string());
        names
    }
}

#[actix_web::test]
async fn a_token_is_shown_at_its_creation_and_never_again() {
    let scene = Scene::start().await;

    let created = scene.create(json!({"name": "scraper", "scope": {"all": true}})).expect(201).await;

    let fields = "created_at expires_at id last_used_address last_used_at name networks prefix rights role scope token";
    assert_eq!(keys_of(&created), fields.split(' ').collect::<Vec<_>>());
    assert_eq!(uuid_of(&created["id"]).get_version_num(), 7);
    assert_eq!(
        (&created["name"], &created["role"], &created["rights"]),
        (&json!("scraper"), &json!("viewer"), &json!([]))
    );
    assert_eq!((&created["scope"], &created["networks"]), (&json!({"all": true}), &json!([])));
    assert_eq!((&created["last_used_at"], &created["last_used_address"]), (&Value::Null, &Value::Null));
    assert_timestamp(&created["created_at"]);
    let time = |field: &str| Timestamp::parse(&text_of(&created[field])).unwrap();
    assert_eq!(time("expires_at").millis_since(time("created_at")), 90 * 24 * 3_600_000);
    let token = text_of(&created["token"]);
    assert!(token.starts_with(&format!("{}_", text_of(&created["prefix"]))), "{created}");
    assert!(token.starts_with("sbt_") && token.len() == "sbt_".len() + 16 + 1 + 43, "{token}");
    let mut without_token = created;
    without_token.as_object_mut().unwrap().remove("token");
    let answer = scene.service.client.get("/tokens").bearer(&scene.owner.token).expect_answer(200).await;
    assert_eq!((answer.json(), answer.header("X-Total-Count")), (json!([without_token]), "1"));
    assert!(!answer.text.contains(&token), "{answer}");
}

#[actix_web::test]
async fn a_token_has_what_was_asked_for_it() {
    let scene = Scene::start().await;
    let expires_at = Timestamp::now().plus_millis(3_600_000).to_string();
    let body = json!({
        "name": "deploys", "role": "operator", "rights": ["terminal", "logs"], "expires_at": expires_at,
        "scope": {"server_ids": [scene.web, scene.db, scene.web]}, "networks": ["10.1.2.3/8", "2001:db8::1", "192.0.2.7"],
    });

    let created = scene.create(body).expect(201).await;

    let mut ids = [scene.web, scene.db];
    ids.sort_unstable();
    assert_eq!((&created["role"], &created["rights"]), (&json!("operator"), &json!(["logs", "terminal"])));
    assert_eq!((&created["scope"], &created["expires_at"]), (&json!({"server_ids": ids}), &json!(expires_at)));
    assert_eq!(created["networks"], json!(["10.0.0.0/8", "2001:db8::1/128", "192.0.2.7/32"]));
    let all = scene.create(json!({"name": "all", "role": "operator", "scope": {"tag": "db"}})).expect(201).await;
    assert_eq!(all["rights"], json!(["containers", "commands", "logs", "terminal"]));
    assert_eq!(all["scope"], json!({"tag": "db"}));
}

#[actix_web::test]
async fn all_faults_of_a_token_come_in_one_answer() {
    let scene = Scene::start().await;

    let missing = [("body", "name", "value_error.missing"), ("body", "scope", "value_error.missing")];
    scene.create(json!({})).expect_faults(422, &missing).await;
    let wrong = json!({
        "name": "", "role": "owner", "scope": {"server_ids": ["web-1"]}, "expires_at": "soon", "networks": ["10.0.0.0/33", 7],
    });
    let faults = [
        ("body", "name", "value_error.*"),
        ("body", "role", "*"),
        ("body", "scope.server_ids.0", "type_error.uuid"),
        ("body", "expires_at", "value_error.datetime"),
        ("body", "networks.0", "value_error.network"),
        ("body", "networks.1", "type_error.*"),
    ];
    scene.create(wrong).expect_faults(422, &faults).await;
    for scope in [json!({}), json!({"all": false}), json!({"all": true, "tag": "db"})] {
        let body = json!({"name": "x", "scope": scope});
        scene.create(body).expect_faults(422, &[("body", "scope", "value_error.reach")]).await;
    }
    let none = json!({"name": "x", "scope": {"server_ids": []}});
    scene.create(none).expect_faults(422, &[("body", "scope.server_ids", "value_error.list.min_items")]).await;
    let rights = json!({"name": "x", "scope": {"all": true}, "role": "viewer", "rights": ["logs"]});
    scene.create(rights).expect_faults(422, &[("body", "rights", "value_error.rights")]).await;
    let none = json!({"name": "x", "scope": {"all": true}, "role": "operator", "rights": []});
    scene.create(none).expect_faults(422, &[("body", "rights", "value_error.list.min_items")]).await;
    let many: Vec<String> = (0..21).map(|number| format!("10.0.0.{number}")).collect();
    let many = json!({"name": "x", "scope": {"all": true}, "networks": many});
    scene.create(many).expect_faults(422, &[("body", "networks", "value_error.list.max_items")]).await;
    let many: Vec<Uuid> = (0..501).map(|_| Uuid::now_v7()).collect();
    let many = json!({"name": "x", "scope": {"server_ids": many}});
    scene.create(many).expect_faults(422, &[("body", "scope.server_ids", "value_error.list.max_items")]).await;
    for days in [-1, 367] {
        let at = Timestamp::now().plus_millis(days * 24 * 3_600_000).to_string();
        let body = json!({"name": "x", "scope": {"all": true}, "expires_at": at});
        scene.create(body).expect_faults(422, &[("body", "expires_at", "value_error.expires_at")]).await;
    }
    assert_eq!(scene.listed().await, json!([]));
}

#[actix_web::test]
async fn a_server_that_its_owner_does_not_see_gets_no_token() {
    let scene = Scene::start().await;
    let bob = scene.service.register("bob").await;
    let foreign = scene.service.server(&bob, "secret").await;
    let scope = |id: Uuid| scene.create(json!({"name": "x", "scope": {"server_ids": [scene.web, id]}}));

    let refused = scope(foreign).expect_error(404, "not_found").await;

    assert_eq!(scope(Uuid::now_v7()).expect_error(404, "not_found").await, refused);
    assert_eq!(scene.listed().await, json!([]));
}

#[actix_web::test]
async fn a_token_belongs_to_its_account_alone() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"all": true}})).await;
    let bob = scene.service.register("bob").await;
    let revoke = |id: Uuid, by: &Account| scene.service.client.delete(format!("/tokens/{id}")).bearer(&by.token);

    let refused = revoke(token.id, &bob).expect_error(404, "not_found").await;

    assert_eq!(revoke(Uuid::now_v7(), &bob).expect_error(404, "not_found").await, refused);
    assert_eq!(scene.service.client.get("/tokens").bearer(&bob.token).expect(200).await, json!([]));
    token.get("/servers").expect(200).await;
    token.revoke().await;
    revoke(token.id, &scene.owner).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn the_last_use_is_noted_with_its_address() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"all": true}})).await;

    token.get("/servers").expect(200).await;

    let used = eventually("the use is noted", async || {
        let listed = scene.listed().await;
        (!listed[0]["last_used_at"].is_null()).then(|| listed[0].clone())
    });
    let used = used.await;
    assert_timestamp(&used["last_used_at"]);
    assert_eq!(used["last_used_address"], "127.0.0.1");
}

#[actix_web::test]
async fn the_audit_log_names_the_token_for_all_that_is_done_through_it() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"name": "deploys", "role": "manager", "scope": {"all": true}})).await;
    let named = json!({"id": token.id, "name": "deploys"});

    let created = token.post("/servers", json!({"name": "new", "host": "192.0.2.9"})).expect(201).await;
    token.revoke().await;

    let entries = scene.audit().await;
    let entry = |action: &str| entries.iter().find(|entry| entry["action"] == action).unwrap();
    let made = entry("server.create");
    assert_eq!((&made["token"], &made["login_id"]), (&named, &Value::Null));
    assert_eq!((&made["user_id"], &made["username"]), (&json!(scene.owner.id), &json!("owner")));
    assert_eq!((&made["server_id"], &made["detail"]["host"]), (&created["id"], &json!("192.0.2.9")));
    for action in ["token.create", "token.revoke"] {
        let entry = entry(action);
        assert_eq!((&entry["target"], &entry["detail"]["name"]), (&json!(token.id), &json!("deploys")));
        assert_eq!(entry["token"], Value::Null);
        assert!(!entry.to_string().contains(&token.text), "{entry}");
    }
    let scope = &entry("token.create")["detail"]["scope"];
    assert_eq!(scope, &json!({"all": true}));
}

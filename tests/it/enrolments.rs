//! `/enrolments` and `/enrol`: machines that make themselves servers.

mod bounds;
mod crowd;
mod machines;
mod once;
mod sharing;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::rest::Call;
use crate::support::{Account, TestService, assert_timestamp, keys_of, text_of, uuid_of};

/// A service with an account that enrols machines.
struct Scene {
    service: TestService,
    owner: Account,
}

/// An enrolment and its token.
struct Enrolment {
    id: Uuid,
    token: String,
}

impl Scene {
    async fn start() -> Self {
        Self::of(TestService::start().await).await
    }

    async fn of(service: TestService) -> Self {
        let owner = service.register("owner").await;
        Self { service, owner }
    }

    fn create(&self, body: Value) -> Call {
        self.service.client.post("/enrolments").bearer(&self.owner.token).json(body)
    }

    /// An enrolment with these fields.
    async fn enrolment(&self, body: Value) -> Enrolment {
        let mut all = json!({"name": "rack 4", "uses": 1_000});
        all.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let made = self.create(all).expect(201).await;
        Enrolment { id: uuid_of(&made["id"]), token: text_of(&made["token"]) }
    }

    fn enrol(&self, token: &str, hostname: &str) -> Call {
        self.service.client.post("/enrol").bearer(token).json(json!({"hostname": hostname}))
    }

    async fn read(&self, path: impl AsRef<str>) -> Value {
        self.service.client.get(path).bearer(&self.owner.token).expect(200).await
    }

    /// What the owner sees of an enrolment.
    async fn shown(&self, enrolment: &Enrolment) -> Value {
        self.read(format!("/enrolments/{}", enrolment.id)).await
    }

    async fn revoke(&self, enrolment: &Enrolment) {
        let path = format!("/enrolments/{}", enrolment.id);
        self.service.client.delete(path).bearer(&self.owner.token).expect(200).await;
    }

    async fn server_names(&self) -> Vec<String> {
        let servers = self.read("/servers?limit=500").await;
        servers.as_array().unwrap().iter().map(|server| text_of(&server["name"])).collect()
    }
}

#[actix_web::test]
async fn the_token_is_shown_at_the_creation_and_never_again() {
    let scene = Scene::start().await;
    let policy = "commands = \"on\" # all of them\n\tlog_paths = [\"/var/log/nginx\"]\nlogs = \"on\"\n";
    let body = json!({
        "name": "rack 4", "uses": 3, "tags": ["web", "production"], "policy": policy, "networks": ["10.1.2.3/8"],
    });

    let created = scene.create(body).expect(201).await;

    let fields = "created_at expires_at grants id last_used_address last_used_at name networks policy prefix tags token uses \
                  uses_left";
    assert_eq!(keys_of(&created), fields.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&created["uses"], &created["uses_left"]), (&json!(3), &json!(3)));
    assert_eq!((&created["tags"], &created["policy"]), (&json!(["web", "production"]), &json!(policy)));
    assert_eq!((&created["networks"], &created["grants"]), (&json!(["10.0.0.0/8"]), &json!([])));
    assert_eq!((&created["last_used_at"], &created["last_used_address"]), (&Value::Null, &Value::Null));
    assert_timestamp(&created["created_at"]);
    let time = |field: &str| Timestamp::parse(&text_of(&created[field])).unwrap();
    assert_eq!(time("expires_at").millis_since(time("created_at")), 7 * 24 * 3_600_000);
    let token = text_of(&created["token"]);
    assert!(token.starts_with(&format!("{}_", text_of(&created["prefix"]))), "{created}");
    assert!(token.starts_with("sbe_") && token.len() == "sbe_".len() + 16 + 1 + 43, "{token}");
    let mut without_token = created;
    without_token.as_object_mut().unwrap().remove("token");
    let answer = scene.service.client.get("/enrolments").bearer(&scene.owner.token).expect_answer(200).await;
    assert_eq!((answer.json(), answer.header("X-Total-Count")), (json!([without_token]), "1"));
    assert_eq!(scene.read(format!("/enrolments/{}", text_of(&without_token["id"]))).await, without_token);
}

#[actix_web::test]
async fn a_machine_becomes_a_server_with_a_key_tags_and_policy() {
    let scene = Scene::start().await;
    let policy = "docker = \"off\"\n";
    let enrolment = scene.enrolment(json!({"uses": 2, "tags": ["web"], "policy": policy})).await;

    let enrolled = scene.enrol(&enrolment.token, "web-1.example.com").expect(201).await;

    assert_eq!(keys_of(&enrolled), ["key", "name", "policy", "server_id"]);
    assert_eq!((&enrolled["name"], &enrolled["policy"]), (&json!("web-1.example.com"), &json!(policy)));
    let key = text_of(&enrolled["key"]);
    assert!(key.starts_with("sbk_") && key.len() == 64, "{key}");
    let server = scene.read(format!("/servers/{}", text_of(&enrolled["server_id"]))).await;
    assert_eq!((&server["name"], &server["host"]), (&json!("web-1.example.com"), &json!("web-1.example.com")));
    assert_eq!((&server["tags"], &server["status"], &server["port"]), (&json!(["web"]), &json!("pending"), &json!(22)));
    let keys = scene.read("/api-keys/me").await;
    assert_eq!((&keys[0]["name"], &keys[0]["server_id"]), (&json!("rack 4"), &enrolled["server_id"]));
    let shown = scene.shown(&enrolment).await;
    assert_eq!((&shown["uses"], &shown["uses_left"]), (&json!(2), &json!(1)));
    assert_timestamp(&shown["last_used_at"]);
    assert_eq!(shown["last_used_address"], "127.0.0.1");
}

#[actix_web::test]
async fn a_name_that_is_taken_gets_a_number() {
    let scene = Scene::start().await;
    let bob = scene.service.register("bob").await;
    scene.service.server(&bob, "web").await;
    scene.service.server(&scene.owner, "web-2").await;
    let enrolment = scene.enrolment(json!({})).await;
    let long = format!("{0}.{0}.{0}", "a".repeat(60));

    let mut names = Vec::new();
    for hostname in ["web", "web", "web", "we_", "we_", "Web", &long, &long] {
        names.push(text_of(&scene.enrol(&enrolment.token, hostname).expect(201).await["name"]));
    }

    assert_eq!(names[..6], ["web", "web-3", "web-4", "we_", "we_-2", "Web"]);
    assert_eq!((names[6].as_str(), names[7].as_str()), (&long[..100], &*format!("{}-2", &long[..98])));
}

#[actix_web::test]
async fn all_faults_come_in_one_answer() {
    let scene = Scene::start().await;

    let missing = [("body", "name", "value_error.missing"), ("body", "uses", "value_error.missing")];
    scene.create(json!({})).expect_faults(422, &missing).await;
    let wrong = json!({
        "name": "", "uses": 1_001, "tags": [""], "expires_at": "soon", "networks": ["10.0.0.0/33"],
        "grants": [{"role": "owner"}], "policy": "commands = \"maybe\"",
    });
    let faults = [
        ("body", "name", "value_error.*"),
        ("body", "uses", "value_error.*"),
        ("body", "tags.0", "value_error.*"),
        ("body", "grants.0.subject", "value_error.missing"),
        ("body", "grants.0.role", "*"),
        ("body", "policy", "value_error.policy"),
        ("body", "expires_at", "value_error.datetime"),
        ("body", "networks.0", "value_error.network"),
    ];
    scene.create(wrong).expect_faults(422, &faults).await;
    let with = |field: &str, value: Value| {
        let mut body = json!({"name": "x", "uses": 1});
        body[field] = value;
        scene.create(body)
    };
    with("uses", json!(0)).expect_faults(422, &[("body", "uses", "value_error.*")]).await;
    for days in [-1, 91] {
        let at = Timestamp::now().plus_millis(days * 24 * 3_600_000).to_string();
        let fault = [("body", "expires_at", "value_error.expires_at")];
        with("expires_at", json!(at)).expect_faults(422, &fault).await;
    }
    let many = |length: usize, value: Value| json!(vec![value; length]);
    let too_many = |field: &'static str| [("body", field, "value_error.list.max_items")];
    with("networks", many(21, json!("10.0.0.1"))).expect_faults(422, &too_many("networks")).await;
    let grant = json!({"subject": {"username": "somebody"}, "role": "viewer"});
    with("grants", many(21, grant)).expect_faults(422, &too_many("grants")).await;
    assert_eq!(scene.read("/enrolments").await, json!([]));
}

/// Policies that the service and install.sh take, and those that both refuse: `install::enrol` reads the same list.
pub fn policies() -> Value {
    serde_json::from_str(include_str!("enrolments/policies.json")).unwrap()
}

#[actix_web::test]
async fn a_policy_that_install_sh_would_refuse_is_refused_with_its_line() {
    let scene = Scene::start().await;
    let policies = policies();
    let body = |policy: &Value| json!({"name": "x", "uses": 1, "policy": policy});

    for policy in policies["accepted"].as_array().unwrap() {
        assert_eq!(scene.create(body(policy)).expect(201).await["policy"], *policy);
    }
    for case in policies["refused"].as_array().unwrap() {
        let fault = [("body", "policy", "value_error.policy")];
        let refused = scene.create(body(&case["policy"])).expect_faults(422, &fault).await;
        let said = refused["detail"][0]["msg"].as_str().unwrap();
        assert!(said.contains(case["says"].as_str().unwrap()), "{case}: {said}");
        assert!(case["line"].is_null() || said.starts_with(&format!("line {}: ", case["line"])), "{case}: {said}");
    }
}

#[actix_web::test]
async fn a_policy_that_the_agent_refuses_or_that_asks_for_signatures_is_refused() {
    let scene = Scene::start().await;
    let signed = "terminal = \"signed\"\nname = \"web-1\"\nsigners = \"/etc/signers\"\n";
    let cases = [
        ("comands = \"on\"\n", "line 1"),
        ("log_paths = [\"var/log\"]\n", "not an absolute path"),
        ("commands = \"on\"\r\n", "line feed"),
        (signed, "asks for signatures"),
        ("name = \"web-1\"\n", ""),
    ];

    for (policy, named) in cases {
        let body = json!({"name": "x", "uses": 1, "policy": policy});
        let refused = scene.create(body).expect_faults(422, &[("body", "policy", "value_error.policy")]).await;
        assert!(refused["detail"][0]["msg"].as_str().unwrap().contains(named), "{policy}: {refused}");
    }
    let long = format!("# {}\n", "a".repeat(16_384));
    let body = json!({"name": "x", "uses": 1, "policy": long});
    scene.create(body).expect_faults(422, &[("body", "policy", "value_error.any_str.max_length")]).await;
}

#[actix_web::test]
async fn what_a_machine_says_is_checked_after_its_token() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({})).await;
    let say = |body: Value| scene.service.client.post("/enrol").bearer(&enrolment.token).json(body);

    say(json!({})).expect_faults(422, &[("body", "hostname", "value_error.missing")]).await;
    for hostname in ["", "-web", "web 1", "web\n1", "(none)", "web_1/..", &"a".repeat(254)] {
        say(json!({"hostname": hostname})).expect_faults(422, &[("body", "hostname", "value_error.*")]).await;
    }
    for id in ["short", &"a".repeat(65), "6b1f0c5e9a3d4e7f8a2b1c0d9e8f7a 6"] {
        let body = json!({"hostname": "web", "request_id": id});
        say(body).expect_faults(422, &[("body", "request_id", "value_error.*")]).await;
    }
    let without = scene.service.client.post("/enrol").json(json!({"hostname": ""}));
    without.expect_error(401, "not_authenticated").await;
    assert_eq!(scene.server_names().await, [] as [&str; 0]);
    assert_eq!(scene.shown(&enrolment).await["uses_left"], 1_000);
}

#[actix_web::test]
async fn an_enrolment_belongs_to_its_account_alone() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({})).await;
    let bob = scene.service.register("bob").await;
    let read = |id: Uuid| scene.service.client.get(format!("/enrolments/{id}")).bearer(&bob.token);
    let revoke = |id: Uuid| scene.service.client.delete(format!("/enrolments/{id}")).bearer(&bob.token);

    let refused = read(enrolment.id).expect_error(404, "not_found").await;

    assert_eq!(read(Uuid::now_v7()).expect_error(404, "not_found").await, refused);
    assert_eq!(revoke(enrolment.id).expect_error(404, "not_found").await, refused);
    assert_eq!(scene.service.client.get("/enrolments").bearer(&bob.token).expect(200).await, json!([]));
    scene.enrol(&enrolment.token, "web").expect(201).await;
}

#[actix_web::test]
async fn the_audit_log_has_the_creation_each_use_and_the_revocation() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"tags": ["web"], "policy": "logs = \"on\"\n"})).await;

    let enrolled = scene.enrol(&enrolment.token, "web").expect(201).await;
    scene.revoke(&enrolment).await;

    let entries = scene.read("/audit").await;
    let entry = |action: &str| {
        let found = entries.as_array().unwrap().iter().find(|entry| entry["action"] == action);
        found.unwrap_or_else(|| panic!("no {action}: {entries}"))
    };
    for action in ["enrolment.create", "enrolment.use", "enrolment.revoke"] {
        let entry = entry(action);
        assert_eq!((&entry["target"], &entry["detail"]["name"]), (&json!(enrolment.id), &json!("rack 4")));
    }
    let created = &entry("enrolment.create")["detail"];
    assert_eq!((&created["tags"], &created["policy"]), (&json!(["web"]), &json!("logs = \"on\"\n")));
    let named = json!({"id": enrolment.id, "name": "rack 4"});
    for action in ["enrolment.use", "server.create", "api_key.create"] {
        let entry = entry(action);
        assert_eq!((&entry["token"], &entry["server_id"]), (&named, &enrolled["server_id"]), "{entry}");
        assert_eq!((&entry["username"], &entry["address"]), (&json!("owner"), &json!("127.0.0.1")));
    }
    let (secret, key) = (&enrolment.token, text_of(&enrolled["key"]));
    assert!(!entries.to_string().contains(secret) && !entries.to_string().contains(&key), "a secret is in the log");
}

//! Groups of the provider, which are teams here.

use serde_json::{Value, json};
use uuid::Uuid;

use super::browser::Browser;
use super::fake::{Answer, Fake};
use super::real::Real;
use crate::support::{TestService, text_of, uuid_of};

/// All teams, each with whether it is the provider's and the names of its members.
async fn teams(service: &TestService, admin: &str) -> Value {
    let list = service.client.get("/teams").bearer(admin).expect(200).await;
    let shown = |team: &Value| {
        let members: Vec<&Value> =
            team["members"].as_array().unwrap().iter().map(|member| &member["username"]).collect();
        json!([team["name"], team["issuer"].is_string(), members])
    };
    list.as_array().unwrap().iter().map(shown).collect()
}

async fn team_named(service: &TestService, admin: &str, name: &str) -> Value {
    let list = service.client.get("/teams").bearer(admin).expect(200).await;
    list.as_array().unwrap().iter().find(|team| team["name"] == name).expect("a team of this name").clone()
}

/// Signs in a person with these groups; none for a provider that says nothing of groups.
async fn sign_in(fake: &Fake, sub: &str, groups: Option<&[&str]>) -> Browser {
    let mut browser = Browser::new();
    // The service asks there for what the token lacks.
    let email = format!("{sub}@example.com");
    let said = json!({"sub": sub, "email": email, "email_verified": true});
    fake.script(|script| script.userinfo = Some(Answer::Json(said)));
    let page = fake
        .sign_in(&mut browser, |claims| {
            (claims["sub"], claims["sid"]) = (json!(sub), json!(Uuid::new_v4()));
            claims["email"] = json!(email);
            claims["preferred_username"] = json!(sub);
            claims["groups"] = json!(groups);
            if groups.is_none() {
                claims.as_object_mut().unwrap().remove("groups");
            }
        })
        .await;
    assert_eq!(page.location.as_deref(), Some("/"), "{}", page.text);
    browser
}

#[actix_web::test]
async fn groups_are_read_from_the_claim_of_the_setting() {
    let fake = Fake::start_with(|config| config.oidc.as_mut().unwrap().groups_claim = "roles".to_owned()).await;
    let mut browser = Browser::new();

    let page = fake
        .sign_in(&mut browser, |claims| {
            (claims["roles"], claims["groups"]) = (json!(["ops"]), json!(["dev"]));
            (claims["email"], claims["email_verified"]) = (json!("grace@example.com"), json!(true));
            claims["preferred_username"] = json!("grace");
        })
        .await;

    assert_eq!(page.location.as_deref(), Some("/"), "{}", page.text);
    assert_eq!(teams(&fake.service, &fake.root.token).await, json!([["ops", true, ["grace"]]]));
}

#[actix_web::test]
async fn a_real_providers_groups_are_teams_with_what_is_granted_to_them() {
    let real = Real::start().await;
    let service = &real.service;
    let server = service.server(&real.root, "web-1").await;
    real.sign_in(&mut Browser::new(), "grace").await;
    assert_eq!(teams(service, &real.root.token).await, json!([["dev", true, ["grace"]]]));
    let dev = team_named(service, &real.root.token, "dev").await;
    assert_eq!((&dev["issuer"], &dev["created_by"]), (&json!(real.issuer), &Value::Null));
    let grant = json!({"subject": {"team_id": dev["id"]}, "scope": {"server_id": server}, "role": "viewer"});
    service.client.post("/grants").bearer(&real.root.token).json(grant).expect(201).await;

    let mut browser = Browser::new();
    real.sign_in(&mut browser, "ada").await;

    let expected = json!([["dev", true, ["ada", "grace"]], ["ops", true, ["ada"]]]);
    assert_eq!(teams(service, &real.root.token).await, expected);
    let token = real.token(&mut browser).await;
    let seen = service.client.get("/servers").bearer(&token).expect(200).await;
    assert_eq!(uuid_of(&seen[0]["id"]), server);
    let log = service.client.get("/audit").query(&[("action", "team.")]).bearer(&token).expect(200).await;
    let told: Vec<(String, &Value)> =
        log.as_array().unwrap().iter().map(|entry| (text_of(&entry["action"]), &entry["detail"]["by"])).collect();
    let by = json!("oidc");
    let expected = ["team.member_add", "team.create", "team.member_add"].map(|action| (action.to_owned(), &by));
    assert_eq!(told, expected);
}

#[actix_web::test]
async fn each_sign_in_makes_the_memberships_those_of_the_groups() {
    let fake = Fake::start().await;
    let (service, root) = (&fake.service, &fake.root.token);
    let server = service.server(&fake.root, "web-1").await;
    let first = sign_in(&fake, "ada", Some(&["ops", "dev"])).await;
    let ops = team_named(service, root, "ops").await;
    let grant = json!({"subject": {"team_id": ops["id"]}, "scope": {"server_id": server}, "role": "viewer"});
    service.client.post("/grants").bearer(root).json(grant).expect(201).await;
    let path = format!("/servers/{server}");
    let token = fake.token(&first).await;
    service.client.get(&path).bearer(&token).expect(200).await;

    sign_in(&fake, "ada", Some(&["dev", "db"])).await;

    // At once, for every login of the account. The team stays, with its grants.
    service.client.get(&path).bearer(&token).expect(404).await;
    let expected = json!([["db", true, ["ada"]], ["dev", true, ["ada"]], ["ops", true, []]]);
    assert_eq!(teams(service, root).await, expected);

    // A provider that says nothing of groups says that there are none.
    sign_in(&fake, "ada", None).await;
    assert_eq!(teams(service, root).await, json!([["db", true, []], ["dev", true, []], ["ops", true, []]]));
    sign_in(&fake, "ada", Some(&["ops"])).await;
    service.client.get(&path).bearer(&token).expect(200).await;
}

#[actix_web::test]
async fn a_team_that_a_person_made_is_never_taken_over() {
    let fake = Fake::start().await;
    let (service, root) = (&fake.service, &fake.root.token);
    let eve = service.register("eve").await;
    let made = service.client.post("/teams").bearer(&eve.token).json(json!({"name": "Ops"})).expect(201).await;

    sign_in(&fake, "ada", Some(&["ops", "dev"])).await;

    assert_eq!(teams(service, root).await, json!([["dev", true, ["ada"]], ["Ops", false, []]]));
    // Once the name is free, the group has its team.
    let path = format!("/teams/{}", text_of(&made["id"]));
    service.client.put(&path).bearer(root).json(json!({"name": "eves"})).expect(200).await;
    sign_in(&fake, "ada", Some(&["ops", "dev"])).await;
    let expected = json!([["dev", true, ["ada"]], ["eves", false, []], ["ops", true, ["ada"]]]);
    assert_eq!(teams(service, root).await, expected);
    // Another group with the same letters is another group.
    sign_in(&fake, "grace", Some(&["OPS"])).await;
    assert_eq!(teams(service, root).await, expected);
    service.client.post("/teams").bearer(&eve.token).json(json!({"name": "DEV"})).expect(400).await;
}

#[actix_web::test]
async fn nobody_edits_a_team_of_the_provider_and_administrators_can_delete_it() {
    let fake = Fake::start().await;
    let (service, root) = (&fake.service, &fake.root.token);
    let browser = sign_in(&fake, "ada", Some(&["ops"])).await;
    let token = fake.token(&browser).await;
    let path = format!("/teams/{}", text_of(&team_named(service, root, "ops").await["id"]));
    let member = |name: &str| format!("{path}/members/{name}");

    for refused in [
        service.client.put(member("root")).bearer(root),
        service.client.delete(member("ada")).bearer(root),
        service.client.delete(member("ada")).bearer(&token),
        service.client.put(&path).bearer(root).json(json!({"name": "other"})),
    ] {
        refused.expect_error(400, "bad_request").await;
    }
    service.client.delete(&path).bearer(&token).expect_error(403, "forbidden").await;
    service.client.delete(&path).bearer(root).expect(200).await;

    assert_eq!(teams(service, root).await, json!([]));
    sign_in(&fake, "ada", Some(&["ops"])).await;
    assert_eq!(teams(service, root).await, json!([["ops", true, ["ada"]]]));
}

#[actix_web::test]
async fn an_account_that_is_unlinked_leaves_the_teams_of_the_provider() {
    let real = Real::start().await;
    let (service, root) = (&real.service, &real.root.token);
    let ada = service.register("ada").await;
    let start = format!("{}/api/v1/auth/oidc/start?link=1", real.base);
    let bearer = format!("Bearer {}", ada.token);
    let page = real.sign_in_from(&mut Browser::new(), "ada", &start, &[("Authorization", &bearer)]).await;
    assert_eq!(page.location.as_deref(), Some("/account/security?oidc=linked"));
    assert_eq!(teams(service, root).await, json!([["dev", true, ["ada"]], ["ops", true, ["ada"]]]));

    let links = service.client.get("/auth/oidc/identities").bearer(&ada.token).expect(200).await;
    let path = format!("/auth/oidc/identities/{}", text_of(&links[0]["id"]));
    service.client.delete(path).bearer(&ada.token).expect(200).await;

    assert_eq!(teams(service, root).await, json!([["dev", true, []], ["ops", true, []]]));
}

#[actix_web::test]
async fn sign_ins_at_the_same_time_make_one_team() {
    let fake = Fake::start().await;
    let (service, root) = (&fake.service, &fake.root.token);
    for name in ["ada", "grace"] {
        sign_in(&fake, name, Some(&[])).await;
    }
    let store = &service.state.store;
    let identities: Vec<_> = {
        let mut all = Vec::new();
        for name in ["ada", "grace"] {
            all.push(store.find_identity(&fake.issuer, name).await.unwrap().unwrap());
        }
        all
    };
    let mut sign_ins = Vec::new();
    for round in 0..8 {
        let known = identities[round % 2].clone();
        let groups: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let login = crate::store_identities::login(known.user_id, &format!("s{round}"));
        let new = signalbox::store::NewIdentity {
            issuer: known.issuer.clone(),
            subject: known.subject.clone(),
            email: None,
            groups,
        };
        let store = store.clone();
        sign_ins.push(async move { store.sign_in_by_identity(known.id, &new, &login).await });
    }

    for signed_in in futures_util::future::join_all(sign_ins).await {
        assert!(signed_in.unwrap().is_some());
    }

    let both = json!(["ada", "grace"]);
    assert_eq!(teams(service, root).await, json!([["a", true, both], ["b", true, both], ["c", true, both]]));
}

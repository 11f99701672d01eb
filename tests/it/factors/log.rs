//! The audit log has each grant, team, invitation, factor and sign-in, and by which means.

use serde_json::{Value, json};

use super::{add_passkey, entries, in_session, login, passkey_login, set_up_app};
use crate::oidc::browser::Browser;
use crate::oidc::real::Real;
use crate::support::{Account, PASSWORD, TestService, eventually, registration, text_of};

/// An account's own entries, oldest first: the action, and what tells one of its kind from another.
async fn told(service: &TestService, account: &Account) -> Vec<String> {
    let list = service.client.get("/audit?limit=100").bearer(&account.token).expect(200).await;
    let line = |entry: &Value| {
        let detail = &entry["detail"];
        let more = ["means", "by", "role", "user", "invitation"].map(|field| &detail[field]);
        let more: Vec<String> = more.iter().filter(|value| value.is_string()).map(|value| text_of(value)).collect();
        [vec![text_of(&entry["action"])], more].concat().join(" ")
    };
    list.as_array().unwrap().iter().rev().map(line).collect()
}

#[actix_web::test]
async fn every_sign_in_tells_its_means_and_every_factor_its_life() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let client = &service.client;

    login(&service, "ada", None).expect(200).await;
    let (app, codes) = set_up_app(&service, &ada).await;
    login(&service, "ada", Some(&app.code(0))).expect(200).await;
    login(&service, "ada", Some(&codes[0])).expect(200).await;
    let mut key = add_passkey(&service, &ada).await;
    let tokens = passkey_login(&service, &mut key).await.expect(200).await;
    let session = in_session(&ada, &tokens);
    let prove = json!({"otp": app.code(1)});
    client.post("/auth/step-up").bearer(&session.token).json(prove).expect(200).await;
    let keys = client.get("/auth/passkeys").bearer(&session.token).expect(200).await;
    client.delete(format!("/auth/passkeys/{}", text_of(&keys[0]["id"]))).bearer(&session.token).expect(200).await;
    let body = json!({"password": PASSWORD, "otp": &codes[1]});
    client.delete("/auth/totp").bearer(&session.token).json(body).expect(200).await;
    login(&service, "ada", Some("000000")).expect(200).await;
    client.post("/auth/login").form(&[("username", "ada"), ("password", "wrong")]).expect_refusal(401).await;

    let logins = eventually("the refusal is recorded", async || {
        let logins = entries(&service, &session, "login").await;
        logins.iter().any(|entry| entry["outcome"] == "refused").then_some(logins)
    })
    .await;
    let means: Vec<String> =
        logins.iter().rev().map(|entry| entry["detail"]["means"].as_str().unwrap_or_default().to_owned()).collect();
    let told = told(&service, &session).await;
    let expected = [
        "user.register",
        "login password",
        "totp.create",
        "login password_otp",
        "recovery_code.use",
        "login password_recovery_code",
        "passkey.create",
        "login passkey",
        "session.prove",
        "passkey.delete",
        "recovery_code.use",
        "totp.delete",
        "login password",
        "login",
    ];
    let without_means =
        |line: &String| expected.iter().any(|wanted| line == wanted || line.starts_with(&format!("{wanted} ")));
    assert!(told.iter().all(without_means), "{told:#?}");
    for wanted in expected {
        let is_there = told.iter().any(|line| line == wanted || line.starts_with(&format!("{wanted} ")));
        assert!(is_there, "{wanted} is missing: {told:#?}");
    }
    // The first is that of the registration.
    let good = ["password", "password", "password_otp", "password_recovery_code", "passkey", "password"];
    assert_eq!(means.iter().filter(|means| !means.is_empty()).collect::<Vec<_>>(), good);
}

#[actix_web::test]
async fn the_log_has_every_grant_team_invitation_and_change_of_an_account() {
    let service = TestService::start().await;
    let (ada, bob) = (service.register("ada").await, service.register("bob").await);
    let server = service.server(&ada, "web-1").await;
    let call = |method: &str, path: &str| service.client.call(method.parse().unwrap(), path).bearer(&ada.token);

    let grant = json!({"subject": {"username": "bob"}, "scope": {"server_id": server}, "role": "operator"});
    let grant = call("POST", "/grants").json(grant).expect(201).await;
    call("DELETE", &format!("/grants/{}", text_of(&grant["id"]))).expect(200).await;
    let team = call("POST", "/teams").json(json!({"name": "ops"})).expect(201).await;
    let team = format!("/teams/{}", text_of(&team["id"]));
    call("PUT", &format!("{team}/members/bob")).expect(200).await;
    call("DELETE", &format!("{team}/members/bob")).expect(200).await;
    call("PUT", &team).json(json!({"name": "night"})).expect(200).await;
    call("DELETE", &team).expect(200).await;
    let first = call("POST", "/users/invitations").json(json!({})).expect(201).await;
    let second = call("POST", "/users/invitations").json(json!({})).expect(201).await;
    call("DELETE", &format!("/users/invitations/{}", text_of(&second["id"]))).expect(200).await;
    let mut carol = registration("carol");
    carol["invitation"] = first["token"].clone();
    let carol = service.client.post("/auth/register").json(carol).expect(201).await;
    let path = format!("/users/{}", bob.id);
    for patch in
        [json!({"is_admin": true}), json!({"is_admin": false}), json!({"disabled": true}), json!({"disabled": false})]
    {
        call("PUT", &path).json(patch).expect(200).await;
    }
    call("DELETE", &path).expect(200).await;

    let list = call("GET", "/audit?limit=100").expect(200).await;
    let actions: Vec<String> = list.as_array().unwrap().iter().rev().map(|entry| text_of(&entry["action"])).collect();
    let expected = [
        "grant.create",
        "grant.delete",
        "team.create",
        "team.member_add",
        "team.member_remove",
        "team.update",
        "team.delete",
        "invitation.create",
        "invitation.create",
        "invitation.revoke",
    ];
    let people: Vec<&String> = actions.iter().filter(|action| expected.contains(&action.as_str())).collect();
    assert_eq!(people, expected);
    let given = &list.as_array().unwrap().iter().find(|entry| entry["action"] == "grant.create").unwrap()["detail"];
    assert_eq!(given["role"], "operator", "{given}");
    let hers = service.client.get("/audit").bearer(&text_of(&carol["access_token"])).expect(200).await;
    let registered = hers.as_array().unwrap().iter().find(|entry| entry["action"] == "user.register").unwrap();
    assert_eq!(registered["detail"]["invitation"], first["id"]);
}

#[actix_web::test]
async fn the_log_has_a_sign_in_at_the_provider_and_its_links() {
    let real = Real::start().await;
    let service = &real.service;
    let mut browser = Browser::new();
    real.sign_in(&mut browser, "grace").await;
    let grace = real.token(&mut browser).await;
    let ada = service.register("ada").await;
    let start = format!("{}/api/v1/auth/oidc/start?link=1", real.base);
    let bearer = format!("Bearer {}", ada.token);
    real.sign_in_from(&mut Browser::new(), "ada", &start, &[("Authorization", &bearer)]).await;
    let links = service.client.get("/auth/oidc/identities").bearer(&ada.token).expect(200).await;
    let path = format!("/auth/oidc/identities/{}", text_of(&links[0]["id"]));
    service.client.delete(path).bearer(&ada.token).expect(200).await;

    let hers = service.client.get("/audit").bearer(&grace).expect(200).await;
    let signed_in = hers.as_array().unwrap().iter().find(|entry| entry["action"] == "login").unwrap();
    assert_eq!((&signed_in["detail"]["means"], &signed_in["detail"]["by"]), (&json!("provider"), &json!("oidc")));
    let registered = hers.as_array().unwrap().iter().find(|entry| entry["action"] == "user.register").unwrap();
    assert_eq!(registered["detail"]["issuer"], json!(real.issuer));
    let told = told(service, &ada).await;
    for wanted in ["identity.link", "identity.unlink", "team.member_add oidc ada", "team.member_remove oidc ada"] {
        assert!(told.iter().any(|line| line == wanted), "{wanted} is missing: {told:#?}");
    }
}

//! Who gets in at the real provider, and as whom.

use serde_json::{Value, json};
use signalbox::config::{OidcConfig, Registration, SecondFactorPolicy};

use super::browser::Browser;
use super::fake::Fake;
use super::real::Real;
use crate::support::authenticator::App;
use crate::support::text_of;

fn allow(entries: &[&str]) -> impl FnOnce(&mut signalbox::config::Config) {
    let allow = entries.iter().map(|entry| entry.parse().unwrap()).collect();
    move |config| config.oidc = config.oidc.take().map(|oidc| OidcConfig { allow, ..oidc })
}

#[actix_web::test]
async fn the_first_sign_in_creates_an_account_and_later_ones_find_it() {
    let real = Real::start().await;
    let (mut first, mut second) = (Browser::new(), Browser::new());

    let page = real.sign_in(&mut first, "ada").await;
    let created = real.me(&mut first).await;
    real.sign_in(&mut second, "ada").await;
    let found = real.me(&mut second).await;

    assert_eq!((page.status, page.location.as_deref()), (302, Some("/")), "{}", page.text);
    assert_eq!(created, found);
    let shown = |field: &str| created[field].clone();
    assert_eq!(
        [shown("username"), shown("email"), shown("full_name"), shown("is_admin")],
        [json!("ada"), json!("ada@example.com"), json!("Ada Lovelace"), json!(false)]
    );
    let token = real.token(&mut first).await;
    let links = real.service.client.get("/auth/oidc/identities").bearer(&token).expect(200).await;
    assert_eq!(links[0]["issuer"], real.issuer);
    assert_eq!(links[0]["subject"], "ada");
    assert_eq!(links[0]["groups"], json!(["dev", "ops"]));
}

#[actix_web::test]
async fn tokens_are_in_cookies_and_never_in_an_address() {
    let real = Real::start().await;
    let mut browser = Browser::new();

    let start = browser.open(&format!("{}/api/v1/auth/oidc/start", real.base)).await;
    let back = real.sign_in(&mut browser, "ada").await;

    let [attempt] = &start.set_cookies[..] else { panic!("{:?}", start.set_cookies) };
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/api/v1/auth/oidc", "Max-Age=600"] {
        assert!(attempt.contains(attribute), "{attempt} has no {attribute}");
    }
    assert_eq!(start.parameter("code_challenge_method"), "S256");
    assert_eq!(start.parameter("response_type"), "code");
    assert_eq!(back.location.as_deref(), Some("/"));
    let refresh = back.set_cookies.iter().find(|cookie| cookie.starts_with("signalbox_refresh_")).unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/api/v1/auth"] {
        assert!(refresh.contains(attribute), "{refresh} has no {attribute}");
    }
    assert!(back.text.is_empty(), "{}", back.text);
    // The one that began first is still on its way; the other one is spent.
    assert_eq!(browser.named("signalbox_oidc_").len(), 1);
}

#[actix_web::test]
async fn the_wanted_page_is_shown_afterwards_and_no_other_site() {
    let real = Real::start().await;
    let start = format!("{}/api/v1/auth/oidc/start", real.base);
    let mut browser = Browser::new();

    let page = real.sign_in_from(&mut browser, "ada", &format!("{start}?return_to=/alerts%3Fopen%3D1"), &[]).await;

    assert_eq!(page.location.as_deref(), Some("/alerts?open=1"));
    for elsewhere in ["//evil.test", "/\\evil.test", "https://evil.test", "evil", ""] {
        let call = real.service.client.get("/auth/oidc/start").query(&[("return_to", elsewhere)]);
        call.expect_some_faults(422, &[]).await;
    }
}

#[actix_web::test]
async fn user_names_that_are_taken_get_a_number() {
    let fake = Fake::start().await;
    fake.service.register("ada").await;
    let mut names = Vec::new();

    for number in 0..3 {
        let mut browser = Browser::new();
        let page = fake
            .sign_in(&mut browser, |claims| {
                claims["sub"] = format!("person-{number}").into();
                claims["email"] = format!("person-{number}@example.com").into();
                claims["preferred_username"] = "Ada".into();
            })
            .await;
        assert_eq!(page.location.as_deref(), Some("/"));
        names.push(text_of(&fake.me(&browser).await["username"]));
    }

    assert_eq!(names, ["Ada-2", "Ada-3", "Ada-4"]);
}

#[actix_web::test]
async fn a_person_without_a_verified_address_gets_no_account() {
    let real = Real::start().await;

    for (name, reason) in [("mallory", "email_unverified"), ("nobody", "no_email")] {
        let mut browser = Browser::new();
        let page = real.sign_in(&mut browser, name).await;

        assert_eq!(page.location, Some(format!("/sign-in?oidc={reason}")));
        assert!(browser.named("signalbox_refresh_").is_empty());
    }
}

#[actix_web::test]
async fn an_account_with_the_same_address_is_not_taken_over() {
    let real = Real::start().await;
    let local = real.service.register("ada").await;
    let mut browser = Browser::new();

    let page = real.sign_in(&mut browser, "ada").await;

    assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=email_taken"));
    assert!(browser.named("signalbox_refresh_").is_empty());
    let links = real.service.client.get("/auth/oidc/identities").bearer(&local.token).expect(200).await;
    assert_eq!(links, json!([]));
}

#[actix_web::test]
async fn domains_and_groups_decide_who_gets_in() {
    let real = Real::start_with(allow(&["ops", "example.org"])).await;

    for (name, target) in [("ada", "/"), ("grace", "/sign-in?oidc=not_allowed")] {
        let mut browser = Browser::new();
        assert_eq!(real.sign_in(&mut browser, name).await.location.as_deref(), Some(target), "{name}");
    }
    let real = Real::start_with(allow(&["example.com"])).await;
    for (name, target) in [("grace", "/"), ("mallory", "/sign-in?oidc=not_allowed")] {
        let mut browser = Browser::new();
        assert_eq!(real.sign_in(&mut browser, name).await.location.as_deref(), Some(target), "{name}");
    }
}

#[actix_web::test]
async fn the_provider_creates_accounts_though_registration_is_closed_but_never_the_first() {
    let fake = Fake::start_with(|config| config.registration = Registration::Closed).await;
    let page = fake.sign_in(&mut Browser::new(), |_| {}).await;
    assert_eq!(page.location.as_deref(), Some("/"));

    let empty = Fake::start_with(|config| config.registration = Registration::Open).await;
    // As on a service that nobody has set up yet.
    let storage = crate::support::Storage::fresh().await;
    let issuer = empty.issuer.clone();
    let fresh = crate::support::TestService::start_on(storage, |config| {
        config.oidc = Some(OidcConfig::new(issuer, "signalbox"));
    })
    .await;
    let base = format!("http://{}", fresh.address);
    let mut browser = Browser::new();
    let start = browser.open(&format!("{base}/api/v1/auth/oidc/start")).await;
    let begun = super::fake::Begun { state: start.parameter("state"), nonce: start.parameter("nonce"), page: start };
    let token = empty.key.sign(&empty.claims(&begun));
    empty.script(|script| script.token = Some(super::fake::Answer::Json(super::fake::tokens(&token))));
    let page = browser.open(&format!("{base}/api/v1/auth/oidc/callback?code=any&state={}", begun.state)).await;

    assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=setup_required"));
    assert_eq!(fresh.client.get("/service").expect(200).await["needs_setup"], true);
}

#[actix_web::test]
async fn a_service_without_a_provider_has_no_such_sign_in() {
    let service = crate::support::TestService::start().await;

    service.client.get("/auth/oidc/start").expect_error(404, "not_found").await;
    service.client.get("/auth/oidc/callback?code=a&state=b").expect_error(404, "not_found").await;
    service.client.post("/auth/oidc/logout").form(&[("logout_token", "a.b.c")]).expect_error(404, "not_found").await;
    let info = service.client.get("/service").expect(200).await;
    assert_eq!((&info["oidc"], &info["password_login"]), (&Value::Null, &json!("on")));
}

#[actix_web::test]
async fn the_sign_in_page_learns_what_the_provider_is_called() {
    let fake = Fake::start().await;
    assert_eq!(fake.service.client.get("/service").expect(200).await["oidc"], json!({ "name": "127.0.0.1" }));

    let named = |config: &mut signalbox::config::Config| {
        config.oidc = config.oidc.take().map(|oidc| OidcConfig { name: Some("Corp".to_owned()), ..oidc });
    };
    let fake = Fake::start_with(named).await;
    assert_eq!(fake.service.client.get("/service").expect(200).await["oidc"], json!({ "name": "Corp" }));
}

#[actix_web::test]
async fn a_sign_in_at_the_provider_is_no_second_factor() {
    let policy = |config: &mut signalbox::config::Config| config.second_factor = SecondFactorPolicy::All;
    let real = Real::start_with(policy).await;
    let mut browser = Browser::new();
    real.sign_in(&mut browser, "ada").await;
    let token = real.token(&mut browser).await;
    let client = &real.service.client;
    let prove = |body| client.post("/auth/step-up").bearer(&token).json(body);

    client.get("/servers").bearer(&token).expect_error(403, "second_factor_required").await;
    prove(json!({"password": "none"})).expect_error(400, "no_password").await;
    let setup = client.post("/auth/totp").bearer(&token).expect(200).await;
    let app = App::new(&text_of(&setup["secret"]));
    client.post("/auth/totp/confirm").bearer(&token).json(json!({"otp": app.code(0)})).expect(200).await;

    let sessions = client.get("/auth/sessions").bearer(&token).expect(200).await;
    assert_eq!(sessions[0]["means"], "provider");
    let mut other = Browser::new();
    real.sign_in(&mut other, "ada").await;
    let weak = real.token(&mut other).await;
    client.get("/servers").bearer(&weak).expect_error(403, "second_factor_required").await;
    client.post("/auth/totp").bearer(&weak).expect_error(403, "step_up_required").await;
    let body = json!({"otp": app.code(1)});
    client.post("/auth/step-up").bearer(&weak).json(body).expect(200).await;
    client.get("/servers").bearer(&weak).expect(200).await;
}

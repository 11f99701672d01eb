//! Links between local accounts and accounts at the provider.

use serde_json::json;

use super::browser::{Browser, Page};
use super::fake::Fake;
use super::real::Real;
use crate::support::{Account, text_of};

async fn link(real: &Real, browser: &mut Browser, account: &Account, name: &str) -> Page {
    let start = format!("{}/api/v1/auth/oidc/start?link=1", real.base);
    let bearer = format!("Bearer {}", account.token);
    real.sign_in_from(browser, name, &start, &[("Authorization", &bearer)]).await
}

/// Puts the session's cookie into the browser, as the interface's sign-in does.
async fn sign_in_with_password(service: &crate::support::TestService, browser: &mut Browser, name: &str) {
    let form = [("username", name), ("password", crate::support::PASSWORD)];
    let answer =
        service.client.post("/auth/login").header("X-Refresh-Cookie", "1").form(&form).expect_answer(200).await;
    let cookie = answer.headers.get("Set-Cookie").unwrap().to_str().unwrap();
    let (name, value) = cookie.split(';').next().and_then(|pair| pair.split_once('=')).unwrap();
    let place = ("127.0.0.1".to_owned(), "/api/v1/auth".to_owned(), name.to_owned());
    browser.jar.insert(place, value.to_owned());
}

#[actix_web::test]
async fn a_linked_account_is_found_by_the_next_sign_in() {
    let real = Real::start().await;
    let local = real.service.register("ada").await;
    let mut browser = Browser::new();

    let linked = link(&real, &mut browser, &local, "ada").await;
    real.sign_in(&mut browser, "ada").await;

    assert_eq!(linked.location.as_deref(), Some("/account/security?oidc=linked"));
    assert_eq!(real.me(&mut browser).await["id"], local.id.to_string());
    let log = real.service.client.get("/audit").query(&[("action", "identity.link")]).bearer(&local.token);
    assert_eq!(log.expect(200).await[0]["detail"]["subject"], "ada");
}

#[actix_web::test]
async fn links_are_listed_in_pages_newest_first() {
    let real = Real::start().await;
    let local = real.service.register("ada").await;
    for name in ["ada", "grace"] {
        let linked = link(&real, &mut Browser::new(), &local, name).await;
        assert_eq!(linked.location.as_deref(), Some("/account/security?oidc=linked"));
    }
    let list = |query: &str| real.service.client.get(format!("/auth/oidc/identities{query}")).bearer(&local.token);

    let all = list("").expect(200).await;
    let page = list("?limit=1&offset=1").expect_answer(200).await;

    assert_eq!((&all[0]["subject"], &all[1]["subject"]), (&json!("grace"), &json!("ada")));
    assert_eq!((page.json(), page.header("X-Total-Count")), (json!([all[1]]), "2"));
    list("?limit=0").expect_faults(422, &[("query", "limit", "value_error.number.not_ge")]).await;
}

#[actix_web::test]
async fn the_cookie_of_the_session_is_enough_unless_another_site_leads_there() {
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    sign_in_with_password(&fake.service, &mut browser, "root").await;
    let start = format!("{}/api/v1/auth/oidc/start?link=1", fake.base);

    let cross = browser.open_with(&start, &[("Sec-Fetch-Site", "cross-site")]).await;
    let same_site = browser.open_with(&start, &[("Sec-Fetch-Site", "same-site")]).await;
    let own = browser.open_with(&start, &[("Sec-Fetch-Site", "same-origin")]).await;

    assert_eq!(cross.location.as_deref(), Some("/sign-in?oidc=session_ended"));
    assert_eq!(same_site.location.as_deref(), Some("/sign-in?oidc=session_ended"));
    assert!(own.target().as_str().starts_with(&fake.issuer));
    let nobody = Browser::new().open(&start).await;
    assert_eq!(nobody.location.as_deref(), Some("/sign-in?oidc=session_ended"));
}

#[actix_web::test]
async fn a_replaced_token_links_nothing() {
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    sign_in_with_password(&fake.service, &mut browser, "root").await;
    let old = browser.named("signalbox_refresh_")[0].1.clone();
    fake.service.client.post("/auth/refresh").json(json!({ "refresh_token": old })).expect(200).await;

    let page = browser.open(&format!("{}/api/v1/auth/oidc/start?link=1", fake.base)).await;

    assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=session_ended"));
}

#[actix_web::test]
async fn one_person_is_linked_to_one_account() {
    let real = Real::start().await;
    let bob = real.service.register("bob").await;
    real.sign_in(&mut Browser::new(), "ada").await;

    let page = link(&real, &mut Browser::new(), &bob, "ada").await;

    assert_eq!(page.location.as_deref(), Some("/account/security?oidc=linked_elsewhere"));
}

#[actix_web::test]
async fn a_person_who_has_signed_out_by_then_links_nothing() {
    let real = Real::start().await;
    let bob = real.service.register("bob").await;
    let mut browser = Browser::new();
    let start = format!("{}/api/v1/auth/oidc/start?link=1", real.base);
    let bearer = format!("Bearer {}", bob.token);
    let back = real.until_callback(&mut browser, "ada", &start, &[("Authorization", &bearer)]).await;

    real.service.client.post("/auth/logout").bearer(&bob.token).expect(200).await;
    let page = browser.open(back.target().as_str()).await;

    assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=session_ended"));
}

#[actix_web::test]
async fn unlinking_ends_the_sessions_that_came_by_it() {
    let real = Real::start().await;
    let local = real.service.register("ada").await;
    let mut browser = Browser::new();
    link(&real, &mut browser, &local, "ada").await;
    real.sign_in(&mut browser, "ada").await;
    let token = real.token(&mut browser).await;
    let links = real.service.client.get("/auth/oidc/identities").bearer(&local.token).expect(200).await;
    let path = format!("/auth/oidc/identities/{}", text_of(&links[0]["id"]));

    real.service.client.delete(&path).bearer(&real.root.token).expect_error(404, "not_found").await;
    real.service.client.delete(&path).bearer(&local.token).expect(200).await;

    real.service.client.get("/auth/me").bearer(&token).expect_error(401, "token_revoked").await;
    real.service.client.get("/auth/me").bearer(&local.token).expect(200).await;
    real.service.client.delete(&path).bearer(&local.token).expect_error(404, "not_found").await;
    let page = real.sign_in(&mut Browser::new(), "ada").await;
    assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=email_taken"));
}

#[actix_web::test]
async fn an_account_without_a_password_keeps_its_last_link() {
    let real = Real::start().await;
    let mut browser = Browser::new();
    real.sign_in(&mut browser, "ada").await;
    let token = real.token(&mut browser).await;
    let links = real.service.client.get("/auth/oidc/identities").bearer(&token).expect(200).await;
    let path = format!("/auth/oidc/identities/{}", text_of(&links[0]["id"]));

    real.service.client.delete(&path).bearer(&token).expect_error(400, "no_password").await;

    real.service.client.get("/auth/me").bearer(&token).expect(200).await;
}

#[actix_web::test]
async fn a_link_and_its_end_need_a_recent_proof() {
    let real = Real::start_with(|config| config.step_up = Some(std::time::Duration::from_secs(300))).await;
    let service = &real.service;
    let ada = service.register("ada").await;
    let linked = link(&real, &mut Browser::new(), &ada, "ada").await;
    assert_eq!(linked.location.as_deref(), Some("/account/security?oidc=linked"));
    let links = service.client.get("/auth/oidc/identities").bearer(&ada.token).expect(200).await;
    let path = format!("/auth/oidc/identities/{}", text_of(&links[0]["id"]));
    // As if ten minutes had passed. A login that was not used yet is not cached.
    let old = service.sign_in(&ada).await;
    crate::factors::execute(service, "UPDATE logins SET proved_at = proved_at - 600000").await;

    let start = format!("{}/api/v1/auth/oidc/start?link=1", real.base);
    let bearer = format!("Bearer {}", old.token);
    let refused = Browser::new().open_with(&start, &[("Authorization", &bearer)]).await;
    let unlink = || service.client.delete(&path).bearer(&old.token);
    unlink().expect_error(403, "step_up_required").await;

    assert_eq!(refused.location.as_deref(), Some("/account/security?oidc=step_up_required"));
    let proof = json!({"password": crate::support::PASSWORD});
    service.client.post("/auth/step-up").bearer(&old.token).json(proof).expect(200).await;
    let begun = Browser::new().open_with(&start, &[("Authorization", &bearer)]).await;
    assert!(begun.target().as_str().starts_with(&real.issuer));
    unlink().expect(200).await;
}

//! `POST /auth/oidc/logout`: the provider ends sessions.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::browser::Browser;
use super::fake::{Fake, Key};
use super::real::Real;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::eventually;

const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// Signs a person in, in a session of the provider. Returns an access token.
async fn sign_in(fake: &Fake, sub: &str, sid: Option<&str>) -> String {
    let mut browser = Browser::new();
    let page = fake
        .sign_in(&mut browser, |claims| {
            claims["sub"] = sub.into();
            claims["sid"] = sid.into();
            claims["email"] = format!("{sub}@example.com").into();
        })
        .await;
    assert_eq!(page.location.as_deref(), Some("/"), "{}", page.text);
    fake.token(&browser).await
}

async fn is_signed_in(fake: &Fake, token: &str) -> bool {
    fake.service.client.get("/auth/me").bearer(token).send().await.status == 200
}

async fn send(fake: &Fake, token: &str) -> u16 {
    let answer = fake.service.client.post("/auth/oidc/logout").form(&[("logout_token", token)]).send().await;
    assert_eq!(answer.header("Cache-Control"), "no-store");
    answer.status
}

fn without(claims: &Value, name: &str) -> Value {
    let mut claims = claims.clone();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

#[actix_web::test]
async fn signing_out_at_the_real_provider_ends_the_session_and_its_sockets_here() {
    let real = Real::start().await;
    let (mut browser, mut other) = (Browser::new(), Browser::new());
    real.sign_in(&mut browser, "ada").await;
    real.sign_in(&mut other, "ada").await;
    let (token, of_other) = (real.token(&mut browser).await, real.token(&mut other).await);
    let mut dashboard =
        Dashboard::open(real.service.address, "/api/v1/ws/fleet", Pass::Header(&token), &[]).await.unwrap();
    dashboard.expect("fleet").await;

    real.sign_out_at_provider(&mut browser).await;

    dashboard.expect_close(4401).await;
    let client = &real.service.client;
    eventually("the session has ended", async || {
        (client.get("/auth/me").bearer(&token).send().await.status == 401).then_some(())
    })
    .await;
    client.get("/auth/me").bearer(&of_other).expect(200).await;
}

#[actix_web::test]
async fn a_session_or_all_of_a_person_are_ended() {
    let fake = Fake::start().await;
    let first = sign_in(&fake, "ada", Some("one")).await;
    let second = sign_in(&fake, "ada", Some("two")).await;
    let without_session = sign_in(&fake, "ada", None).await;
    let bob = sign_in(&fake, "bob", Some("three")).await;
    let notice = |jti: &str, sub: Option<&str>, sid: Option<&str>| {
        let mut claims = fake.provider.logout_claims(jti);
        claims["sub"] = sub.into();
        claims["sid"] = sid.into();
        fake.key.sign_as(Some("logout+jwt"), &claims)
    };

    assert_eq!(send(&fake, &notice("a", None, Some("one"))).await, 200);
    assert!(!is_signed_in(&fake, &first).await);
    assert!(is_signed_in(&fake, &second).await);
    // A session of somebody else is not this person's.
    assert_eq!(send(&fake, &notice("b", Some("ada"), Some("three"))).await, 200);
    assert!(is_signed_in(&fake, &bob).await);
    assert_eq!(send(&fake, &notice("c", Some("ada"), None)).await, 200);
    assert!(!is_signed_in(&fake, &second).await);
    assert!(!is_signed_in(&fake, &without_session).await);
    assert!(is_signed_in(&fake, &bob).await);
    assert!(is_signed_in(&fake, &fake.root.token).await);
    // Nobody is signed in there any more, which is what was wanted.
    assert_eq!(send(&fake, &notice("d", Some("ada"), None)).await, 200);
}

#[actix_web::test]
async fn a_message_counts_once() {
    let fake = Fake::start().await;
    sign_in(&fake, "42", Some("session-1")).await;
    let token = fake.key.sign(&fake.provider.logout_claims("once"));
    assert_eq!(send(&fake, &token).await, 200);
    let back = sign_in(&fake, "42", Some("session-1")).await;

    assert_eq!(send(&fake, &token).await, 400);

    assert!(is_signed_in(&fake, &back).await);
}

#[actix_web::test]
async fn messages_that_are_forged_or_for_something_else_end_nothing() {
    let fake = Fake::start().await;
    let token = sign_in(&fake, "42", Some("session-1")).await;
    let good = fake.provider.logout_claims("good");
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        fake.key.sign(&claims)
    };
    let now = Timestamp::now().as_seconds();
    let mut nobody = without(&good, "sub");
    nobody = without(&nobody, "sid");
    let signed = fake.key.sign(&good);
    let (unsigned, _) = signed.rsplit_once('.').unwrap();
    let cases = [
        ("another key", Key::new("first").sign(&good)),
        ("an unknown key", Key::new("second").sign(&good)),
        ("no signature", format!("{unsigned}.")),
        ("no algorithm", none_signed(&good)),
        ("the public key as a secret", by_secret(&fake.key.public, &good)),
        ("another issuer", with("iss", json!("https://evil.test"))),
        ("another audience", with("aud", json!("another client"))),
        ("no audience", with("aud", json!([]))),
        ("too old", with("iat", json!(now - 3_600))),
        ("from the future", with("iat", json!(now + 3_600))),
        ("expired", with("exp", json!(now - 300))),
        ("no events", fake.key.sign(&without(&good, "events"))),
        ("other events", with("events", json!({ "another": {} }))),
        ("an event that is no object", with("events", json!({ EVENT: true }))),
        ("a nonce", with("nonce", json!("any"))),
        ("nobody", fake.key.sign(&nobody)),
        ("no name", fake.key.sign(&without(&good, "jti"))),
        ("an ID token", fake.key.sign(&fake.provider.claims("any"))),
        ("another kind of token", fake.key.sign_as(Some("at+jwt"), &good)),
        ("no token", "a.b.c".to_owned()),
        ("nothing", String::new()),
        ("something long", "a".repeat(100_000)),
    ];

    for (what, forged) in cases {
        assert_eq!(send(&fake, &forged).await, 400, "{what}");
        assert!(is_signed_in(&fake, &token).await, "{what}");
    }
    fake.service.client.post("/auth/oidc/logout").form(&[("other", "field")]).expect_some_faults(422, &[]).await;

    assert_eq!(send(&fake, &signed).await, 200);
    assert!(!is_signed_in(&fake, &token).await);
}

fn none_signed(claims: &Value) -> String {
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.", encode(&json!({ "alg": "none" })), encode(claims))
}

fn by_secret(secret: &[u8], claims: &Value) -> String {
    let header = jsonwebtoken::Header { kid: Some("first".to_owned()), ..Default::default() };
    jsonwebtoken::encode(&header, claims, &jsonwebtoken::EncodingKey::from_secret(secret)).unwrap()
}

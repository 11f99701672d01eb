//! What is refused: forged tokens, answers for others, answers from others.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use signalbox::config::OidcConfig;
use signalbox_protocol::Timestamp;

use super::browser::{Browser, Page};
use super::fake::{Answer, Begun, Fake, Key, tokens};
use crate::support::write_private;

const REFUSED: &str = "/sign-in?oidc=failed";

#[track_caller]
fn assert_refused(page: &Page, browser: &Browser, what: &str) {
    assert_eq!(page.location.as_deref(), Some(REFUSED), "{what}: {}", page.text);
    assert!(browser.named("signalbox_refresh_").is_empty(), "{what}");
}

/// Nobody but the administrator has an account.
async fn assert_nobody_came(fake: &Fake) {
    let log = fake
        .service
        .client
        .get("/audit")
        .query(&[("action", "user.register"), ("all", "true")])
        .bearer(&fake.root.token);
    assert_eq!(log.expect(200).await.as_array().unwrap().len(), 1);
}

#[actix_web::test]
async fn the_unchanged_token_is_accepted() {
    let fake = Fake::start().await;

    let page = fake.sign_in(&mut Browser::new(), |_| {}).await;

    assert_eq!(page.location.as_deref(), Some("/"), "{}", page.text);
}

#[actix_web::test]
async fn claims_that_do_not_fit_are_refused() {
    let fake = Fake::start().await;
    let now = Timestamp::now().as_seconds();
    let elsewhere = "http://127.0.0.1:1";
    let cases: Vec<(&str, &str, Value)> = vec![
        ("another audience", "aud", json!("another client")),
        ("no audience", "aud", json!([])),
        ("several audiences and nobody who asked", "aud", json!(["signalbox", "another client"])),
        ("another party that asked", "azp", json!("another client")),
        ("another issuer", "iss", json!(elsewhere)),
        ("the issuer with a slash", "iss", json!(format!("{}/", fake.issuer))),
        ("another sign-in's nonce", "nonce", json!("another")),
        ("no nonce", "nonce", Value::Null),
        ("expired", "exp", json!(now - 300)),
        ("from the past", "iat", json!(now - 3_600)),
        ("from the future", "iat", json!(now + 3_600)),
        ("no subject", "sub", json!("")),
        ("a subject without an end", "sub", json!("a".repeat(300))),
        ("another access token's hash", "at_hash", json!("AAAAAAAAAAAAAAAAAAAAAA")),
    ];

    for (what, name, value) in cases {
        let mut browser = Browser::new();
        let page = fake.sign_in(&mut browser, |claims| claims[name] = value).await;
        assert_refused(&page, &browser, what);
    }

    assert_nobody_came(&fake).await;
}

#[actix_web::test]
async fn a_token_for_several_is_accepted_if_this_service_asked_for_it() {
    let fake = Fake::start().await;

    let page = fake
        .sign_in(&mut Browser::new(), |claims| {
            claims["aud"] = json!(["signalbox", "an api"]);
            claims["azp"] = "signalbox".into();
        })
        .await;

    assert_eq!(page.location.as_deref(), Some("/"));
}

/// A token whose header says this, with the signature that `sign` makes of the rest.
fn token_with(header: Value, claims: &Value, sign: impl FnOnce(&str) -> String) -> String {
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(&header), encode(claims));
    let signature = sign(&signed);
    format!("{signed}.{signature}")
}

type Forge<'a> = Box<dyn Fn(&Value) -> String + 'a>;

fn forge<'a>(make: impl Fn(&Value) -> String + 'a) -> Forge<'a> {
    Box::new(make)
}

#[actix_web::test]
async fn forged_signatures_are_refused() {
    const SECRET: &str = "the secret of this client";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    write_private(&file, SECRET);
    let fake = Fake::start_with(|config| {
        config.oidc = config.oidc.take().map(|oidc| OidcConfig { client_secret_file: Some(file), ..oidc });
    })
    .await;
    let other_key = Key::new("first");
    let by_secret = |secret: &[u8], claims: &Value| {
        let header = Header { kid: Some("first".to_owned()), ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(secret)).unwrap()
    };
    let unsigned = |header: Value, claims: &Value| token_with(header, claims, |_| String::new());
    let cases: Vec<(&str, Forge<'_>)> = vec![
        ("another key of the same name", forge(|claims| other_key.sign(claims))),
        ("no algorithm", forge(|claims| unsigned(json!({ "alg": "none" }), claims))),
        ("no algorithm, another spelling", forge(|claims| unsigned(json!({ "alg": "None" }), claims))),
        ("no algorithm with a key", forge(|claims| unsigned(json!({ "alg": "none", "kid": "first" }), claims))),
        ("no signature", forge(|claims| unsigned(json!({ "alg": "ES256", "kid": "first" }), claims))),
        ("the public key as a secret", forge(|claims| by_secret(&fake.key.public, claims))),
        ("the client's secret", forge(|claims| by_secret(SECRET.as_bytes(), claims))),
        (
            "another token's signature",
            forge(|claims| {
                let good = fake.key.sign(&json!({ "sub": "somebody else" }));
                let signature = good.rsplit('.').next().unwrap().to_owned();
                token_with(json!({ "alg": "ES256", "kid": "first" }), claims, |_| signature)
            }),
        ),
        ("a logout token", forge(|claims| fake.key.sign_as(Some("logout+jwt"), claims))),
        ("no token", forge(|_| "not a token".to_owned())),
        ("nothing", forge(|_| String::new())),
    ];

    for (what, forged) in &cases {
        let mut browser = Browser::new();
        let begun = fake.begin(&mut browser).await;
        let token = forged(&fake.claims(&begun));
        let page = fake.come_back(&mut browser, &begun, &token).await;
        assert_refused(&page, &browser, what);
    }

    assert_nobody_came(&fake).await;
}

#[actix_web::test]
async fn an_answer_without_a_usable_token_is_refused() {
    let fake = Fake::start().await;
    let answers = [
        ("no ID token", Answer::Json(json!({ "access_token": "a", "token_type": "Bearer" }))),
        ("no JSON object", Answer::Json(json!([]))),
        ("refused", Answer::Status(400)),
        ("broken", Answer::Status(500)),
    ];

    for (what, answer) in answers {
        let mut browser = Browser::new();
        let begun = fake.begin(&mut browser).await;
        fake.script(|script| script.token = Some(answer));
        let page = fake.call_back(&mut browser, &[("code", "any"), ("state", &begun.state)]).await;
        assert_refused(&page, &browser, what);
    }
}

#[actix_web::test]
async fn another_issuer_gets_no_code() {
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    let begun = fake.begin(&mut browser).await;

    let parameters = [("code", "for another"), ("state", begun.state.as_str()), ("iss", "https://evil.test")];
    let page = fake.call_back(&mut browser, &parameters).await;

    assert_refused(&page, &browser, "mix-up");
    assert!(fake.script.lock().token_requests.is_empty(), "the code was sent to the provider");
}

#[actix_web::test]
async fn a_provider_that_says_it_names_itself_has_to() {
    let fake = Fake::start().await;
    fake.script(|script| script.other = vec![("authorization_response_iss_parameter_supported", true.into())]);
    let mut browser = Browser::new();

    let begun = fake.begin(&mut browser).await;
    let unnamed = fake.call_back(&mut browser, &[("code", "any"), ("state", &begun.state)]).await;

    assert_refused(&unnamed, &browser, "no issuer");
    let begun = fake.begin(&mut browser).await;
    let token = fake.key.sign(&fake.claims(&begun));
    fake.script(|script| script.token = Some(Answer::Json(tokens(&token))));
    let parameters = [("code", "any"), ("state", begun.state.as_str()), ("iss", fake.issuer.as_str())];
    let named = fake.call_back(&mut browser, &parameters).await;
    assert_eq!(named.location.as_deref(), Some("/"));
}

#[actix_web::test]
async fn only_the_browser_that_began_can_finish_and_only_once() {
    const EXPIRED: Option<&str> = Some("/sign-in?oidc=expired");
    let fake = Fake::start().await;
    let (mut mine, mut other) = (Browser::new(), Browser::new());
    let begun = fake.begin(&mut mine).await;
    let token = fake.key.sign(&fake.claims(&begun));

    let without = fake.come_back(&mut Browser::new(), &begun, &token).await;
    fake.begin(&mut other).await;
    let of_another = fake.come_back(&mut other, &begun, &token).await;
    let without_state = fake.call_back(&mut mine, &[("code", "any")]).await;
    let good = fake.come_back(&mut mine, &begun, &token).await;
    let again = fake.come_back(&mut mine, &begun, &token).await;

    assert_eq!(without.location.as_deref(), EXPIRED);
    assert_eq!(of_another.location.as_deref(), EXPIRED);
    assert_eq!(without_state.location.as_deref(), EXPIRED);
    assert_eq!(good.location.as_deref(), Some("/"));
    assert_eq!(again.location.as_deref(), EXPIRED);
    assert_eq!(fake.script.lock().token_requests.len(), 1);
}

#[actix_web::test]
async fn a_cookie_that_was_moved_to_another_state_is_worth_nothing() {
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    let first = fake.begin(&mut browser).await;
    let second = fake.begin(&mut browser).await;
    let values: Vec<String> = browser.named("signalbox_oidc_").into_iter().map(|(_, value)| value.clone()).collect();
    let places: Vec<_> = browser.named("signalbox_oidc_").into_iter().map(|(place, _)| place.clone()).collect();

    // Each under the name of the other.
    browser.jar.insert(places[0].clone(), values[1].clone());
    browser.jar.insert(places[1].clone(), values[0].clone());

    for begun in [&first, &second] {
        let token = fake.key.sign(&fake.claims(begun));
        let page = fake.come_back(&mut browser, begun, &token).await;
        assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=expired"));
    }
}

#[actix_web::test]
async fn a_code_is_redeemed_with_the_verifier_of_its_challenge() {
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    let begun = fake.begin(&mut browser).await;
    let challenge = begun.page.parameter("code_challenge");

    let token = fake.key.sign(&fake.claims(&begun));
    fake.come_back(&mut browser, &begun, &token).await;

    let body = fake.script.lock().token_requests[0].clone();
    let form: Vec<(String, String)> = serde_urlencoded::from_str(&body).unwrap();
    let (_, verifier) = form.iter().find(|(name, _)| name == "code_verifier").expect("a verifier");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    assert_eq!(BASE64_URL_SAFE_NO_PAD.encode(digest), challenge);
}

#[actix_web::test]
async fn a_person_who_says_no_returns_to_the_sign_in_page() {
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    let begun = fake.begin(&mut browser).await;

    let page = fake.call_back(&mut browser, &[("error", "access_denied"), ("state", &begun.state)]).await;

    assert_eq!(page.location.as_deref(), Some("/sign-in?oidc=denied"));
}

#[actix_web::test]
async fn what_is_said_of_another_person_is_refused() {
    let fake = Fake::start().await;
    let said = |sub: &str| json!({ "sub": sub, "email": "bob@example.org", "email_verified": true, "groups": ["ops"] });
    let answers = [
        (Answer::Json(said("another")), "failed"),
        (Answer::Json(json!({ "email": "bob@example.org", "email_verified": true })), "failed"),
        (Answer::Json(json!([])), "failed"),
        (Answer::Status(500), "failed"),
        (Answer::Endless, "unavailable"),
    ];

    for (answer, outcome) in answers {
        fake.script(|script| script.userinfo = Some(answer));
        let mut browser = Browser::new();
        let page = fake.sign_in(&mut browser, |claims| claims["email"] = Value::Null).await;
        assert_eq!(page.location, Some(format!("/sign-in?oidc={outcome}")));
        assert!(browser.named("signalbox_refresh_").is_empty());
    }
    assert_nobody_came(&fake).await;
    fake.script(|script| script.userinfo = Some(Answer::Json(said("42"))));
    let page = fake.sign_in(&mut Browser::new(), |claims| claims["email"] = Value::Null).await;
    assert_eq!(page.location.as_deref(), Some("/"));
}

#[actix_web::test]
async fn a_new_key_of_the_provider_is_fetched_once() {
    let fake = Fake::start().await;
    assert_eq!(fake.sign_in(&mut Browser::new(), |_| {}).await.location.as_deref(), Some("/"));
    let next = Key::new("second");
    fake.script(|script| script.published = vec![next.clone()]);

    let page = sign_in_by(&fake, &next).await;
    let reads = fake.script.lock().key_reads;
    let forged = sign_in_by(&fake, &Key::new("third")).await;
    let forged_again = sign_in_by(&fake, &Key::new("fourth")).await;
    let retired = sign_in_by(&fake, &fake.key).await;

    assert_eq!(page.location.as_deref(), Some("/"));
    assert_eq!(reads, 2);
    for page in [forged, forged_again, retired] {
        assert_eq!(page.location.as_deref(), Some(REFUSED));
    }
    assert_eq!(fake.script.lock().key_reads, 2, "unknown keys do not make the service ask each time");
}

async fn sign_in_by(fake: &Fake, key: &Key) -> Page {
    let mut browser = Browser::new();
    let begun: Begun = fake.begin(&mut browser).await;
    let token = key.sign(&fake.claims(&begun));
    fake.come_back(&mut browser, &begun, &token).await
}

#[actix_web::test]
async fn a_browser_that_keeps_its_cookie_has_the_provider_asked_once() {
    let fake = Fake::start().await;
    let mut browser = Browser::new();
    let begun = fake.begin(&mut browser).await;
    let kept = browser.jar.clone();
    fake.script(|script| script.token = Some(Answer::Status(400)));

    for _ in 0..5 {
        browser.jar = kept.clone();
        fake.call_back(&mut browser, &[("code", "any"), ("state", &begun.state)]).await;
    }

    assert_eq!(fake.script.lock().token_requests.len(), 1);
}

#[actix_web::test]
async fn a_sign_in_is_as_recent_a_proof_as_the_providers_question() {
    let fake = Fake::start_with(|config| config.step_up = Some(std::time::Duration::from_secs(600))).await;
    let now = signalbox_protocol::Timestamp::now().as_seconds();
    let mut browser = Browser::new();
    assert_eq!(fake.begin(&mut browser).await.page.parameter("max_age"), "600");

    for (asked_at, expected) in [(json!(now - 30), 201), (json!(now - 601), 403), (json!(null), 403)] {
        let mut browser = Browser::new();
        let page = fake.sign_in(&mut browser, |claims| claims["auth_time"] = asked_at.clone()).await;
        assert_eq!(page.location.as_deref(), Some("/"));
        let token = fake.token(&browser).await;
        let team = json!({ "name": format!("team {asked_at}") });
        let answer = fake.service.client.post("/teams").bearer(&token).json(team).send().await;
        assert_eq!(answer.status, expected, "{asked_at}");
    }
}

//! The provider is away, slow, or answers nonsense.

use std::time::{Duration, Instant};

use serde_json::json;
use signalbox::config::{Config, OidcConfig};

use super::browser::Browser;
use super::fake::{Answer, Fake};
use crate::support::TestService;
use crate::support::port::Port;

/// Only for answers that do not come: a pause of the machine may be longer.
const BRIEFLY: Duration = Duration::from_secs(3);

fn impatient(config: &mut Config) {
    config.oidc = config.oidc.take().map(|oidc| OidcConfig { answer_within: BRIEFLY, ..oidc });
}

const UNAVAILABLE: Option<&str> = Some("/sign-in?oidc=unavailable");

#[actix_web::test]
async fn the_service_starts_and_takes_passwords_while_the_provider_is_away() {
    let port = Port::reserve();
    let service = TestService::start_with(|config| {
        config.oidc = Some(OidcConfig::new(format!("http://{}", port.address), "signalbox"));
    })
    .await;
    let account = service.register("root").await;

    let start = service.client.get("/auth/oidc/start").expect_answer(302).await;

    assert_eq!(Some(start.header("Location")), UNAVAILABLE);
    service.sign_in(&account).await;
}

#[actix_web::test]
async fn a_provider_that_comes_back_is_used_again() {
    let fake = Fake::start().await;
    fake.script(|script| script.document = Some(Answer::Status(503)));
    let mut browser = Browser::new();
    let start = format!("{}/api/v1/auth/oidc/start", fake.base);
    assert_eq!(browser.open(&start).await.location.as_deref(), UNAVAILABLE);

    fake.script(|script| script.document = None);

    crate::support::eventually("the provider is asked again", async || {
        let page = Browser::new().open(&start).await;
        (page.location.as_deref() != UNAVAILABLE).then_some(())
    })
    .await;
    assert_eq!(fake.sign_in(&mut browser, |_| {}).await.location.as_deref(), Some("/"));
}

#[actix_web::test]
async fn nobody_waits_long_for_a_silent_provider_and_others_are_served() {
    let fake = Fake::start_with(impatient).await;
    fake.script(|script| script.document = Some(Answer::Silence));
    let start = format!("{}/api/v1/auth/oidc/start", fake.base);
    let begun = Instant::now();

    let mut browser = Browser::new();
    let (page, _) = tokio::join!(browser.open(&start), fake.service.client.get("/service").expect(200));

    assert_eq!(page.location.as_deref(), UNAVAILABLE);
    assert!(begun.elapsed() >= BRIEFLY, "{:?}", begun.elapsed());
}

#[actix_web::test]
async fn documents_that_cannot_be_used_are_refused() {
    let cases = [
        Answer::Endless,
        Answer::Status(404),
        Answer::Json(json!({})),
        Answer::Json(json!("not a document")),
        Answer::Json(json!({
            "issuer": "https://another.test", "authorization_endpoint": "https://another.test/a",
            "token_endpoint": "https://another.test/t", "jwks_uri": "https://another.test/k",
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })),
    ];

    for answer in cases {
        let fake = Fake::start().await;
        fake.script(|script| script.document = Some(answer));
        let page = Browser::new().open(&format!("{}/api/v1/auth/oidc/start", fake.base)).await;
        assert_eq!(page.location.as_deref(), UNAVAILABLE);
    }
}

#[actix_web::test]
async fn a_provider_without_public_keys_is_refused() {
    for algorithms in [json!(["HS256"]), json!(["none"]), json!([])] {
        let fake = Fake::start().await;
        fake.script(|script| script.other = vec![("id_token_signing_alg_values_supported", algorithms)]);
        let page = Browser::new().open(&format!("{}/api/v1/auth/oidc/start", fake.base)).await;
        assert_eq!(page.location.as_deref(), UNAVAILABLE);
    }
}

#[actix_web::test]
async fn many_who_begin_read_the_document_once() {
    let fake = Fake::start().await;
    let start = format!("{}/api/v1/auth/oidc/start", fake.base);

    let pages = futures_util::future::join_all((0..8).map(|_| async { Browser::new().open(&start).await })).await;

    assert!(pages.iter().all(|page| page.target().as_str().starts_with(&fake.issuer)));
    assert_eq!(fake.script.lock().document_reads, 1);
}

#[actix_web::test]
async fn a_silent_token_endpoint_is_given_up() {
    let fake = Fake::start_with(impatient).await;
    let mut browser = Browser::new();
    let start = format!("{}/api/v1/auth/oidc/start", fake.base);
    // A pause of the machine may be longer than the limit. What the provider publishes is read once.
    crate::support::eventually("the provider is known", async || {
        let page = Browser::new().open(&start).await;
        (page.location.as_deref() != UNAVAILABLE).then_some(())
    })
    .await;

    for answer in [Answer::Silence, Answer::Endless] {
        let begun = fake.begin(&mut browser).await;
        fake.script(|script| script.token = Some(answer));
        let page = fake.call_back(&mut browser, &[("code", "any"), ("state", &begun.state)]).await;
        assert_eq!(page.location.as_deref(), UNAVAILABLE);
    }
}

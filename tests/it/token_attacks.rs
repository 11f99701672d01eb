//! Tokens that the service did not make.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use crate::support::tokens::{assembled, claims_of, header_of, signed_by};
use crate::support::{Account, TestService};

async fn assert_refused(service: &TestService, token: &str) {
    service.client.get("/auth/me").bearer(token).expect_refusal(401).await;
    let body = json!({"refresh_token": token});
    service.client.post("/auth/refresh").json(body).expect_refusal(401).await;
}

/// A service with an account whose own token works, so that a refusal has only the attack as its reason.
async fn target() -> (TestService, Account) {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    service.client.get("/auth/me").bearer(&account.token).expect(200).await;
    (service, account)
}

#[actix_web::test]
async fn an_unsigned_token_is_refused() {
    let (service, account) = target().await;
    let signature = account.token.rsplit('.').next().unwrap();

    for token in [&account.token, &account.refresh_token] {
        for algorithm in ["none", "None", "NONE", ""] {
            let header = json!({"alg": algorithm, "typ": "JWT"});
            assert_refused(&service, &assembled(&header, &claims_of(token), "")).await;
            assert_refused(&service, &assembled(&header, &claims_of(token), signature)).await;
        }
        assert_refused(&service, &assembled(&header_of(token), &claims_of(token), "")).await;
    }
}

#[actix_web::test]
async fn a_token_of_another_signer_is_refused() {
    let (service, account) = target().await;

    for token in [&account.token, &account.refresh_token] {
        for secret in ["secret", "", "signalbox"] {
            let forged = signed_by(secret.as_bytes(), Algorithm::HS256, &claims_of(token));
            assert_refused(&service, &forged).await;
        }
        assert_refused(&service, &signed_by(b"secret", Algorithm::HS512, &claims_of(token))).await;
    }
}

#[actix_web::test]
async fn a_token_of_another_installation_is_refused() {
    let (service, _) = target().await;
    let (_other, stranger) = target().await;

    assert_refused(&service, &stranger.token).await;
    assert_refused(&service, &stranger.refresh_token).await;
}

#[actix_web::test]
async fn a_changed_claim_breaks_the_signature() {
    let (service, account) = target().await;
    let victim = service.register("bob").await;
    let signature = account.token.rsplit('.').next().unwrap();
    let changed = |claim: &str, value: Value| {
        let mut claims = claims_of(&account.token);
        claims[claim] = value;
        assembled(&header_of(&account.token), &claims, signature)
    };

    assert_refused(&service, &changed("sub", json!(victim.id))).await;
    assert_refused(&service, &changed("sid", claims_of(&victim.token)["sid"].clone())).await;
    assert_refused(&service, &changed("typ", json!("refresh"))).await;
    assert_refused(&service, &changed("exp", json!(32_503_680_000_u64))).await;
}

#[actix_web::test]
async fn what_is_no_token_is_refused() {
    let (service, account) = target().await;
    let [header, claims, signature] = account.token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let broken = [
        "x".to_owned(),
        "..".to_owned(),
        "a.b.c".to_owned(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{header}..{signature}"),
        format!("{}.{signature}", account.token),
        account.token[..account.token.len() - 4].to_owned(),
        "x".repeat(4_000),
    ];

    for token in broken {
        assert_refused(&service, &token).await;
    }
}

#[actix_web::test]
async fn a_header_that_carries_no_bearer_token_is_refused() {
    let (service, account) = target().await;
    let me = || service.client.get("/auth/me");

    me().expect_refusal(401).await;
    for value in ["", "Bearer", "Bearer ", "Basic YWxpY2U6cHc=", &account.token, &format!("Token {}", account.token)] {
        me().header("Authorization", value).expect_refusal(401).await;
    }
    me().header("Cookie", &format!("access_token={}", account.token)).expect_refusal(401).await;
}

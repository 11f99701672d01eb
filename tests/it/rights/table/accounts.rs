//! What an account does to itself, and what needs none.

use serde_json::{Value, json};

use super::super::objects::Object;
use super::{Line, Needs, on};
use crate::support::authenticator::Device;
use crate::support::{PASSWORD, registration};

/// What an account does to itself.
pub fn own() -> Vec<Line> {
    let ends_session = |line: Line| Line { ends_session: true, ..line };
    vec![
        on("GET /api/v1/auth/me", Needs::Myself),
        on("PUT /api/v1/auth/me", Needs::Myself).json(|_| json!({"full_name": "Ada"})),
        on("DELETE /api/v1/auth/me", Needs::Myself)
            .json(|_| json!({"password": "wrong"}))
            .fails(400, "invalid_credentials"),
        on("POST /api/v1/auth/change-password", Needs::Myself)
            .json(|_| json!({"current_password": "wrong", "new_password": PASSWORD}))
            .fails(400, "invalid_credentials"),
        on("GET /api/v1/auth/quotas", Needs::Myself),
        on("GET /api/v1/tokens", Needs::Myself),
        on("POST /api/v1/tokens", Needs::Myself)
            .json(|_| json!({"name": "program", "scope": {"all": true}}))
            .answers(201),
        on("DELETE /api/v1/tokens/{id}", Needs::Mine).of(Object::Token),
        on("GET /api/v1/enrolments", Needs::Myself),
        on("POST /api/v1/enrolments", Needs::Myself).json(|_| json!({"name": "rack 4", "uses": 1})).answers(201),
        on("GET /api/v1/enrolments/{id}", Needs::Mine).of(Object::Enrolment),
        on("DELETE /api/v1/enrolments/{id}", Needs::Mine).of(Object::Enrolment),
        on("GET /api/v1/auth/sessions", Needs::Myself),
        on("DELETE /api/v1/auth/sessions/{id}", Needs::Mine).of(Object::Session),
        ends_session(on("POST /api/v1/auth/logout", Needs::Myself).json(|_| json!({}))),
        on("POST /api/v1/auth/step-up", Needs::Myself).json(|_| json!({"password": PASSWORD})),
        on("POST /api/v1/auth/totp", Needs::Myself),
        on("POST /api/v1/auth/totp/confirm", Needs::Myself)
            .json(|_| json!({"otp": "000000"}))
            .fails(400, "invalid_credentials"),
        on("DELETE /api/v1/auth/totp", Needs::Myself)
            .json(|_| json!({"password": PASSWORD, "otp": "000000"}))
            .fails(400, "bad_request"),
        on("GET /api/v1/auth/passkeys", Needs::Myself),
        on("POST /api/v1/auth/passkeys/registration", Needs::Myself),
        on("POST /api/v1/auth/passkeys", Needs::Myself).json(|_| new_passkey()).fails(400, "bad_request"),
        on("DELETE /api/v1/auth/passkeys/{id}", Needs::Myself).of(Object::Nowhere).fails(404, "not_found"),
        on("GET /api/v1/auth/oidc/identities", Needs::Myself),
        // There is no provider, so nobody has one.
        on("DELETE /api/v1/auth/oidc/identities/{id}", Needs::Myself).of(Object::Nowhere).fails(404, "not_found"),
    ]
}

/// A passkey for a challenge that the service never made.
fn new_passkey() -> Value {
    let credential = Device::new().make(&json!({"challenge": "bm9uZQ"}));
    json!({"name": "key", "credential": credential})
}

/// The same as the answer of a passkey.
fn signed() -> Value {
    json!({"credential": Device::new().sign(&json!({"challenge": "bm9uZQ"}))})
}

/// What needs no account.
pub fn public() -> Vec<Line> {
    vec![
        on("POST /api/v1/auth/register", Needs::Nothing).json(|scene| registration(&scene.name())).answers(201),
        on("POST /api/v1/auth/login", Needs::Nothing)
            .form(|scene| vec![("username", scene.spare.username.clone()), ("password", PASSWORD.to_owned())]),
        on("POST /api/v1/auth/refresh", Needs::Nothing)
            .json(|_| json!({"refresh_token": "none"}))
            .fails(401, "token_invalid"),
        on("POST /api/v1/auth/passkeys/challenge", Needs::Nothing),
        on("POST /api/v1/auth/passkeys/login", Needs::Nothing).json(|_| signed()).fails(401, "invalid_credentials"),
        on("GET /api/v1/auth/oidc/start", Needs::Nothing).answers(404),
        on("GET /api/v1/auth/oidc/callback", Needs::Nothing).answers(404),
        on("POST /api/v1/auth/oidc/logout", Needs::Nothing)
            .form(|_| vec![("logout_token", "none".to_owned())])
            .answers(404),
        // Takes the token of an enrolment, which nobody here has.
        on("POST /api/v1/enrol", Needs::Nothing).json(|_| json!({"hostname": "web-1"})).answers(401),
        on("GET /api/v1/service", Needs::Nothing),
        // The key comes with the first message.
        on("GET /api/v1/agents/ws", Needs::Nothing),
        on("GET /healthz", Needs::Nothing),
        on("GET /readyz", Needs::Nothing),
        on("GET /metrics", Needs::Nothing),
        on("GET /install", Needs::Nothing),
        on("GET /install.sh", Needs::Nothing),
        on("GET /install/{name}", Needs::Nothing).answers(404),
    ]
}

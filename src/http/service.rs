//! `/service`: information for pages that no user has signed in to yet.

use actix_web::web::Json;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::json;

use super::error::ApiError;
use super::extract::field::described;
use super::extract::{Anyone, Checked};
use super::field_out::TimeOut;
use super::path::at;
use crate::config::PasswordLogin;
use crate::store::Registration;

/// What clients without a token may know.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ServiceOut {
    version: String,
    /// Whether there is no account yet. The first account administers the service.
    needs_setup: bool,
    /// Whether the first account requires the setup code that the service wrote to its log.
    setup_code_required: bool,
    registration: RegistrationOut,
    /// Who may sign in with a password: everybody, administrators, or only the oldest administrator with a password.
    password_login: PasswordLoginOut,
    /// The identity provider that people may sign in at (`/auth/oidc/start`); null if there is none.
    oidc: Option<IdentityProviderOut>,
    /// The public address of the service, if its operator has set one.
    public_url: Option<String>,
    /// Whether the service can send e-mail.
    email: bool,
    /// The service's public key for push subscriptions of browsers (RFC 8292) in base64, null if it has none.
    push_key: Option<String>,
    /// When the service started. Agents take up to a minute to reconnect after that.
    started_at: TimeOut,
}

/// Whether people may create accounts themselves; the first one can always be created.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistrationOut {
    Open,
    Closed,
}

described!(RegistrationOut, json!({ "type": "string", "enum": ["open", "closed"] }));

impl From<Registration> for RegistrationOut {
    fn from(registration: Registration) -> Self {
        match registration {
            Registration::Open => Self::Open,
            Registration::Closed => Self::Closed,
        }
    }
}

/// Who may sign in with a password.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PasswordLoginOut {
    On,
    Admins,
    Off,
}

described!(PasswordLoginOut, json!({ "type": "string", "enum": ["on", "admins", "off"] }));

impl From<PasswordLogin> for PasswordLoginOut {
    fn from(login: PasswordLogin) -> Self {
        match login {
            PasswordLogin::On => Self::On,
            PasswordLogin::Admins => Self::Admins,
            PasswordLogin::Off => Self::Off,
        }
    }
}

/// An identity provider.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct IdentityProviderOut {
    /// What people call it.
    name: String,
}

/// Get information about the service
///
/// For pages that no user has signed in to yet. Requires no token.
#[api_v2_operation(tags(Service), operation_id = "read_service")]
pub async fn read(ask: Checked<Anyone>) -> Result<Json<ServiceOut>, ApiError> {
    let config = &ask.state.config;
    let accounts = &ask.state.accounts;
    let needs_setup = accounts.needs_setup().await?;
    Ok(Json(ServiceOut {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        needs_setup,
        setup_code_required: needs_setup && accounts.setup.requires_code(ask.subject.via),
        registration: config.registration.into(),
        password_login: config.password_login.into(),
        oidc: ask.state.oidc.as_ref().map(|oidc| IdentityProviderOut { name: oidc.name().to_owned() }),
        public_url: config.public_url.clone(),
        email: config.smtp_url.is_some() && config.smtp_from.is_some(),
        push_key: ask.state.notifier.push_key().map(str::to_owned),
        started_at: TimeOut(ask.state.started_at),
    }))
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![at("/service").route(get().to(read))]
}

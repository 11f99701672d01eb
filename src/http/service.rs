//! `/service`: what a page must know before anybody has signed in.

use actix_web::web::Json;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::json;

use super::error::ApiError;
use super::extract::field::described;
use super::extract::{Anyone, Ask};
use super::path::at;
use crate::store::Registration;

/// What the service tells clients without a token.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ServiceOut {
    version: String,
    /// Whether there is no account yet: the first one administers the service.
    needs_setup: bool,
    /// Whether that first account needs the setup code that the service wrote to its log.
    setup_code_required: bool,
    registration: RegistrationOut,
    /// The address at which people reach it, if its operator has set one.
    public_url: Option<String>,
    /// Whether it can send e-mail.
    email: bool,
}

/// Whether people may make accounts by themselves; the first one can always be made.
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

/// What a page must know before anybody has signed in
///
/// Needs no token.
#[api_v2_operation(tags(Service), operation_id = "read_service")]
pub async fn read(ask: Ask<Anyone>) -> Result<Json<ServiceOut>, ApiError> {
    let config = &ask.state.config;
    let accounts = &ask.state.accounts;
    let needs_setup = accounts.needs_setup().await?;
    Ok(Json(ServiceOut {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        needs_setup,
        setup_code_required: needs_setup && accounts.setup.requires_code(ask.subject.via),
        registration: config.registration.into(),
        public_url: config.public_url.clone(),
        email: config.smtp_url.is_some() && config.smtp_from.is_some(),
    }))
}

/// Its routes. Fixed paths stand before those with parameters that they would match.
pub fn routes() -> Vec<Resource> {
    vec![at("/service").route(get().to(read))]
}

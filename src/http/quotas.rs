//! `/auth/quotas`: how much of everything an account has, and may have.

use actix_web::web::Json;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::json;

use super::error::ApiError;
use super::extract::field::described;
use super::extract::{Ask, SignedIn};
use super::path::at;
use crate::store::{Quota, Usage};

/// How much of something an account has.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct QuotaOut {
    /// `evaluations` are enabled thresholds times their servers, `batches` those that run, `command_bytes` what is stored.
    name: QuotaName,
    /// How many there are; of `command_bytes` how many bytes.
    used: u64,
    /// How many there may be.
    limit: u64,
}

/// What is bounded.
#[derive(Debug)]
pub struct QuotaName(Quota);

impl Serialize for QuotaName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

described!(QuotaName, json!({ "type": "string", "enum": Quota::ALL.map(Quota::name), "example": "servers" }));

impl From<Usage> for QuotaOut {
    fn from(Usage { quota, used, limit }: Usage) -> Self {
        Self { name: QuotaName(quota), used, limit }
    }
}

/// Usage and limits of your account
///
/// A request that would exceed a limit is refused with 400 `quota_exceeded`. The service's flags set the limits.
#[api_v2_operation(tags(Authentication), operation_id = "list_quotas")]
pub async fn list(ask: Ask<SignedIn>) -> Result<Json<Vec<QuotaOut>>, ApiError> {
    let usage = ask.state.store.usage(ask.subject.caller.user_id).await?;
    Ok(Json(usage.into_iter().map(QuotaOut::from).collect()))
}

/// Its routes. Fixed paths stand before those with parameters that they would match.
pub fn routes() -> Vec<Resource> {
    vec![at("/auth/quotas").route(get().to(list))]
}

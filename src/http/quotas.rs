//! `/auth/quotas`: the usage and limits of an account.

use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::json;

use super::error::ApiError;
use super::extract::field::described;
use super::extract::param::PageQuery;
use super::extract::{Checked, SignedIn};
use super::path::at;
use super::reply::Listed;
use crate::store::{PageRequest, Quota, Usage};

/// The usage and limit of one quota.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct QuotaOut {
    /// `evaluations` counts enabled thresholds times their servers, `batches` the running ones, `command_bytes` the
    /// stored ones.
    name: QuotaName,
    /// The present number; for `command_bytes`, the number of bytes.
    used: u64,
    /// The maximum.
    limit: u64,
}

/// The name of a quota.
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

/// Get the usage and limits of your account
///
/// A request that would exceed a limit is refused with 400 `quota_exceeded`. The service's flags set the limits.
#[api_v2_operation(tags(Authentication), operation_id = "list_quotas")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<QuotaOut>, ApiError> {
    let usage = ask.state.store.usage(ask.subject.caller.user_id).await?;
    let total = usage.len() as u64;
    let PageRequest { limit, offset } = ask.query.into();
    let page = usage.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX));
    let page = page.take(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Listed { items: page.map(QuotaOut::from).collect(), total })
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![at("/auth/quotas").route(get().to(list))]
}

//! Errors of the store, and of rights to servers.

use super::{ApiError, ErrorCode, quota};
use crate::auth::access::AccessError;
use crate::store::{MAX_INVITATIONS, MAX_SCHEDULES, MAX_WAITING, StoreError};

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if error.is_busy() {
            tracing::warn!(%error, "the database is unreachable or too busy");
            return Self::code(ErrorCode::Busy);
        }
        match error {
            StoreError::EmailTaken => Self::code(ErrorCode::EmailTaken),
            StoreError::UsernameTaken => Self::code(ErrorCode::UsernameTaken),
            StoreError::TeamNameTaken => {
                Self::Refused { code: ErrorCode::BadRequest, detail: "This team name is taken".into() }
            }
            StoreError::RegistrationClosed => Self::code(ErrorCode::RegistrationClosed),
            StoreError::InvitationInvalid => Self::code(ErrorCode::InvitationInvalid),
            StoreError::TooManyInvitations => {
                let detail = format!("{MAX_INVITATIONS} invitations are open: revoke one, or wait until one expires");
                Self::Refused { code: ErrorCode::QuotaExceeded, detail: detail.into() }
            }
            StoreError::TooManySchedules => {
                let detail = format!("You have {MAX_SCHEDULES} schedules: delete one");
                Self::Refused { code: ErrorCode::QuotaExceeded, detail: detail.into() }
            }
            StoreError::TooManyApprovals => {
                let detail = format!(
                    "{MAX_WAITING} of your commands wait for signatures: withdraw one, or wait until one runs or expires"
                );
                Self::Refused { code: ErrorCode::QuotaExceeded, detail: detail.into() }
            }
            StoreError::NotAdministrator => Self::code(ErrorCode::Forbidden),
            StoreError::LastAdministrator => Self::code(ErrorCode::LastAdmin),
            StoreError::OwnsServers => Self::code(ErrorCode::OwnsServers),
            StoreError::EnabledAgain => {
                let detail = "The account was enabled again, and stays: delete it again";
                Self::Refused { code: ErrorCode::BadRequest, detail: detail.into() }
            }
            StoreError::NoRecipient => Self::not_found("There is no account for the servers"),
            StoreError::NoAccount => Self::code(ErrorCode::TokenRevoked),
            StoreError::NoServer => Self::not_found("Server not found"),
            StoreError::QuotaExceeded { quota, limit } => {
                Self::Refused { code: ErrorCode::QuotaExceeded, detail: quota::exceeded(quota, limit).into() }
            }
            StoreError::MigrationBlocked | StoreError::Unreachable(_) => Self::code(ErrorCode::Busy),
            StoreError::Database(_)
            | StoreError::NotSqlite
            | StoreError::BadScheme
            | StoreError::BadUrl(_)
            | StoreError::InMemory
            | StoreError::NoFile(_)
            | StoreError::CannotOpen { .. }
            | StoreError::NoPermission(_)
            | StoreError::Copy { .. } => Self::internal(error),
        }
    }
}

impl From<AccessError> for ApiError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::NotFound => Self::not_found("Server not found"),
            AccessError::Forbidden => Self::code(ErrorCode::Forbidden),
            AccessError::TokenNotAllowed => Self::code(ErrorCode::TokenNotAllowed),
            AccessError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;
    use actix_web::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn a_server_that_was_deleted_a_moment_ago_is_one_that_does_not_exist() {
        let unknown = json!({ "detail": "Server not found", "status_code": 404, "code": "not_found" });

        for error in [ApiError::from(StoreError::NoServer), ApiError::from(AccessError::NotFound)] {
            let body = to_bytes(error.error_response().into_body()).await.unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), unknown);
        }
    }
}

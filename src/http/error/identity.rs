//! Errors of sign-ins and second factors.

use super::{ApiError, ErrorCode};
use crate::auth::account::AccountError;
use crate::auth::bearer::BearerError;
use crate::auth::factors::FactorError;
use crate::auth::password::PasswordError;
use crate::auth::setup::SetupError;
use crate::auth::token::TokenError;
use crate::http::extract::fault::Part;
use crate::http::reply::fault_of;

impl From<AccountError> for ApiError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::InvalidCredentials => Self::code(ErrorCode::LoginFailed),
            AccountError::PasswordLoginOff => Self::code(ErrorCode::PasswordLoginOff),
            AccountError::NoPassword => Self::code(ErrorCode::NoPassword),
            AccountError::OtpRequired => Self::code(ErrorCode::OtpRequired),
            AccountError::TokenReused => Self::code(ErrorCode::TokenReused),
            AccountError::SessionEnded => Self::code(ErrorCode::TokenRevoked),
            AccountError::Setup(error) => {
                let code = match error {
                    SetupError::Missing | SetupError::Wrong => ErrorCode::SetupRequired,
                    SetupError::TooMany => ErrorCode::Busy,
                };
                Self::Refused { code, detail: error.to_string().into() }
            }
            AccountError::Token(TokenError::Expired) => Self::code(ErrorCode::TokenExpired),
            AccountError::Token(TokenError::Invalid) => Self::code(ErrorCode::TokenInvalid),
            AccountError::Password(PasswordError::Busy(_)) => Self::code(ErrorCode::Busy),
            AccountError::Password(PasswordError::Failed(_)) => Self::internal(error),
            AccountError::Factor(FactorError::WrongCode) => Self::code(ErrorCode::LoginFailed),
            AccountError::Factor(FactorError::Passkey(reason)) => {
                tracing::debug!(%reason, "a passkey was refused");
                let detail = "The passkey was not accepted: try again, or sign in another way";
                Self::Refused { code: ErrorCode::LoginFailed, detail: detail.into() }
            }
            AccountError::Factor(error) => error.into(),
            AccountError::Store(error) => error.into(),
        }
    }
}

impl From<BearerError> for ApiError {
    fn from(error: BearerError) -> Self {
        let refused = |code, detail: String| Self::Refused { code, detail: detail.into() };
        match error {
            BearerError::Token(TokenError::Expired) => Self::code(ErrorCode::TokenExpired),
            BearerError::Token(TokenError::Invalid) => Self::code(ErrorCode::TokenInvalid),
            BearerError::Ended => Self::code(ErrorCode::TokenRevoked),
            BearerError::Revoked => {
                refused(ErrorCode::TokenRevoked, "This token was revoked, or does not exist; create a new one".into())
            }
            BearerError::Network(address) => {
                refused(ErrorCode::TokenInvalid, format!("This token is for other networks; you come from {address}"))
            }
            BearerError::Store(error) => error.into(),
        }
    }
}

impl From<FactorError> for ApiError {
    fn from(error: FactorError) -> Self {
        let refused = |code, detail: &'static str| Self::Refused { code, detail: detail.into() };
        match error {
            FactorError::SecondFactorRequired => Self::code(ErrorCode::SecondFactorRequired),
            FactorError::StepUpRequired => Self::code(ErrorCode::StepUpRequired),
            FactorError::TotpExists => {
                refused(ErrorCode::BadRequest, "You have an authenticator app already: remove it first")
            }
            FactorError::PasswordMissing => {
                Self::Invalid(fault_of("password", "value_error.missing", "field required").within(Part::Body))
            }
            FactorError::NoTotp => refused(ErrorCode::BadRequest, "You have no authenticator app: set one up first"),
            FactorError::WrongCode => {
                refused(ErrorCode::InvalidCredentials, "The code is wrong or was used: enter the newest one")
            }
            FactorError::TooManyCodes { seconds } => {
                let minutes = match seconds.div_ceil(60) {
                    1 => "a minute".to_owned(),
                    minutes => format!("{minutes} minutes"),
                };
                Self::Paused { detail: format!("Too many wrong codes; try again in {minutes}"), seconds }
            }
            FactorError::NoRelyingParty(reason) => {
                Self::Refused { code: ErrorCode::BadRequest, detail: reason.to_string().into() }
            }
            FactorError::Passkey(reason) => {
                let detail = format!("The passkey was not accepted: {reason}");
                Self::Refused { code: ErrorCode::BadRequest, detail: detail.into() }
            }
            FactorError::Seal(_) | FactorError::NoRandomness(_) => Self::internal(error),
            FactorError::Store(error) => error.into(),
        }
    }
}

//! Errors as the client gets them: a status, a sentence and an error code from a closed set.

mod identity;
mod meaning;
mod of_parts;
mod quota;
mod stored;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Errors;
use serde::Serialize;
use signalbox_protocol::agent::RequestError;

use super::extract::fault::{Fault, Faults};
use crate::memory::OverBudget;
use crate::shares::Full;

/// How long a client should wait after a 503, in seconds: a queue is usually shorter by then.
const USUAL_PAUSE_SECONDS: u64 = 2;

/// The longest text of an agent that an error contains, in bytes.
const MAX_AGENT_DETAIL: usize = 1_000;

/// Every error code, with its status and its default sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    AgentDisconnected,
    AgentOffline,
    AgentTimeout,
    AgentRefused,
    AgentError,
    DockerError,
    DockerUnavailable,
    EmailTaken,
    UsernameTaken,
    InvalidCredentials,
    NoPassword,
    BadRequest,
    QuotaExceeded,
    NoRelease,
    ReleaseIncomplete,
    RolloutRunning,
    RolloutEnded,
    NothingToUpdate,
    LastAdmin,
    OwnsServers,
    LoginFailed,
    OtpRequired,
    NotAuthenticated,
    TokenInvalid,
    TokenExpired,
    TokenRevoked,
    TokenReused,
    Forbidden,
    TokenNotAllowed,
    SecondFactorRequired,
    StepUpRequired,
    RegistrationClosed,
    PasswordLoginOff,
    SetupRequired,
    InvitationInvalid,
    EnrolmentUsedUp,
    OriginNotAllowed,
    HostNotAllowed,
    NotFound,
    NoMetrics,
    ContainerNotFound,
    MethodNotAllowed,
    PayloadTooLarge,
    InternalError,
    Busy,
}

impl ErrorCode {
    /// All codes, for the OpenAPI document and its test.
    pub const ALL: [Self; 45] = [
        Self::AgentDisconnected,
        Self::AgentOffline,
        Self::AgentTimeout,
        Self::AgentRefused,
        Self::AgentError,
        Self::DockerError,
        Self::DockerUnavailable,
        Self::EmailTaken,
        Self::UsernameTaken,
        Self::InvalidCredentials,
        Self::NoPassword,
        Self::BadRequest,
        Self::QuotaExceeded,
        Self::NoRelease,
        Self::ReleaseIncomplete,
        Self::RolloutRunning,
        Self::RolloutEnded,
        Self::NothingToUpdate,
        Self::LastAdmin,
        Self::OwnsServers,
        Self::LoginFailed,
        Self::OtpRequired,
        Self::NotAuthenticated,
        Self::TokenInvalid,
        Self::TokenExpired,
        Self::TokenRevoked,
        Self::TokenReused,
        Self::Forbidden,
        Self::TokenNotAllowed,
        Self::SecondFactorRequired,
        Self::StepUpRequired,
        Self::RegistrationClosed,
        Self::PasswordLoginOff,
        Self::SetupRequired,
        Self::InvitationInvalid,
        Self::EnrolmentUsedUp,
        Self::OriginNotAllowed,
        Self::HostNotAllowed,
        Self::NotFound,
        Self::NoMetrics,
        Self::ContainerNotFound,
        Self::MethodNotAllowed,
        Self::PayloadTooLarge,
        Self::InternalError,
        Self::Busy,
    ];

    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::AgentDisconnected => (S::BAD_REQUEST, "agent_disconnected", "The agent's connection was lost"),
            Self::AgentOffline => (S::BAD_REQUEST, "agent_offline", "The server's agent is offline"),
            Self::AgentTimeout => (S::BAD_REQUEST, "agent_timeout", "The server's agent did not answer in time"),
            Self::AgentRefused => (S::BAD_REQUEST, "agent_refused", "The server's agent refused the request"),
            Self::AgentError => (S::BAD_REQUEST, "agent_error", "The server's agent reported an error"),
            Self::DockerError => (S::BAD_REQUEST, "docker_error", "The container engine refused the request"),
            Self::DockerUnavailable => {
                (S::BAD_REQUEST, "docker_unavailable", "No container engine answers on this server")
            }
            Self::EmailTaken => (S::BAD_REQUEST, "email_taken", "This e-mail address is taken"),
            Self::UsernameTaken => (S::BAD_REQUEST, "username_taken", "This user name is taken"),
            Self::InvalidCredentials => (S::BAD_REQUEST, "invalid_credentials", "The current password is wrong"),
            Self::NoPassword => {
                (S::BAD_REQUEST, "no_password", "This account has no password: it signs in at the identity provider")
            }
            Self::BadRequest => (S::BAD_REQUEST, "bad_request", "The request could not be understood"),
            Self::QuotaExceeded => (S::BAD_REQUEST, "quota_exceeded", "The account's quota is reached"),
            Self::NoRelease => {
                (S::BAD_REQUEST, "no_release", "This service has no signed release of the agent that it could offer")
            }
            Self::ReleaseIncomplete => (
                S::BAD_REQUEST,
                "release_incomplete",
                "Some programs of the agent's release are not here as it names them",
            ),
            Self::RolloutRunning => {
                (S::BAD_REQUEST, "rollout_running", "A rollout has not ended: wait for it, or cancel it")
            }
            Self::RolloutEnded => (S::BAD_REQUEST, "rollout_ended", "The rollout has ended"),
            Self::NothingToUpdate => (
                S::BAD_REQUEST,
                "nothing_to_update",
                "None of your servers in these waves takes signed updates and has another version of the agent",
            ),
            Self::LastAdmin => (
                S::BAD_REQUEST,
                "last_admin",
                "This account is the last administrator, or the last one with a password; make another one an administrator first",
            ),
            Self::OwnsServers => (
                S::BAD_REQUEST,
                "owns_servers",
                "This account has servers; delete them, or have an administrator give them to another account",
            ),
            Self::LoginFailed => (S::UNAUTHORIZED, "invalid_credentials", "Wrong user name or password"),
            Self::OtpRequired => (S::UNAUTHORIZED, "otp_required", "Enter the code of your authenticator app"),
            Self::NotAuthenticated => (S::UNAUTHORIZED, "not_authenticated", "Not authenticated"),
            Self::TokenInvalid => (S::UNAUTHORIZED, "token_invalid", "The token is not valid"),
            Self::TokenExpired => (S::UNAUTHORIZED, "token_expired", "The token has expired"),
            Self::TokenRevoked => (S::UNAUTHORIZED, "token_revoked", "The session has ended"),
            Self::TokenReused => {
                (S::UNAUTHORIZED, "token_reused", "This refresh token was used before; the session has ended")
            }
            Self::Forbidden => (S::FORBIDDEN, "forbidden", "You are not allowed to do this"),
            Self::TokenNotAllowed => (
                S::FORBIDDEN,
                "token_not_allowed",
                "This token does not allow this: sign in, or use a token that allows more",
            ),
            Self::SecondFactorRequired => {
                (S::FORBIDDEN, "second_factor_required", "Set up a second factor, or prove the one that you have")
            }
            Self::StepUpRequired => (S::FORBIDDEN, "step_up_required", "Prove again who you are"),
            Self::RegistrationClosed => (S::FORBIDDEN, "registration_closed", "Registration is closed"),
            Self::PasswordLoginOff => (
                S::FORBIDDEN,
                "password_login_off",
                "This account signs in at the identity provider, not with a password",
            ),
            Self::SetupRequired => (S::FORBIDDEN, "setup_required", "The first account needs the setup code"),
            Self::InvitationInvalid => (
                S::FORBIDDEN,
                "invitation_invalid",
                "This invitation was used, has expired, or is for another e-mail address; ask for a new one",
            ),
            Self::EnrolmentUsedUp => (
                S::FORBIDDEN,
                "enrolment_used_up",
                "This enrolment has made all the servers that it allows; create another one",
            ),
            Self::OriginNotAllowed => {
                (S::FORBIDDEN, "origin_not_allowed", "Requests from pages of this origin are not allowed")
            }
            Self::HostNotAllowed => {
                (S::MISDIRECTED_REQUEST, "host_not_allowed", "This service does not answer to this host name")
            }
            Self::NotFound => (S::NOT_FOUND, "not_found", "Not found"),
            Self::NoMetrics => (S::NOT_FOUND, "no_metrics", "This server has not sent any metrics yet"),
            Self::ContainerNotFound => (S::NOT_FOUND, "container_not_found", "No such container"),
            Self::MethodNotAllowed => (S::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed"),
            Self::PayloadTooLarge => (S::PAYLOAD_TOO_LARGE, "payload_too_large", "The body is larger than 1 MiB"),
            Self::InternalError => (S::INTERNAL_SERVER_ERROR, "internal_error", "Internal server error"),
            Self::Busy => (S::SERVICE_UNAVAILABLE, "busy", "The service is busy, try again soon"),
        }
    }

    pub fn status(self) -> StatusCode {
        self.parts().0
    }

    pub fn name(self) -> &'static str {
        self.parts().1
    }
}

/// An error on its way to the client.
#[derive(Debug)]
pub enum ApiError {
    /// Status 422, with all faults of the request.
    Invalid(Faults),
    Refused {
        code: ErrorCode,
        detail: Cow<'static, str>,
    },
    /// An agent's refusal that says why a signature did not suffice.
    NotSigned {
        detail: String,
        reason: String,
    },
    /// Busy for a known time.
    Paused {
        detail: String,
        seconds: u64,
    },
    /// A fault of the service: the body does not explain it, but the log does.
    Internal(String),
}

impl ApiError {
    /// An error with its default sentence.
    pub fn code(code: ErrorCode) -> Self {
        Self::Refused { code, detail: code.parts().2.into() }
    }

    pub fn not_found(what: &'static str) -> Self {
        Self::Refused { code: ErrorCode::NotFound, detail: what.into() }
    }

    pub fn too_large() -> Self {
        Self::code(ErrorCode::PayloadTooLarge)
    }

    /// An agent's error: its own text with one of our codes.
    pub fn of_agent(mut error: RequestError) -> Self {
        error.detail.truncate(error.detail.floor_char_boundary(MAX_AGENT_DETAIL));
        let code = match error.code.as_str() {
            "agent_refused" => return Self::agent_refused(error),
            "agent_timeout" => ErrorCode::AgentTimeout,
            "agent_busy" => ErrorCode::Busy,
            "container_not_found" => return Self::code(ErrorCode::ContainerNotFound),
            "docker_error" => ErrorCode::DockerError,
            "docker_unavailable" => ErrorCode::DockerUnavailable,
            // The agent may be newer than the service, or faulty.
            _ => ErrorCode::AgentError,
        };
        Self::Refused { code, detail: error.detail.into() }
    }

    /// An agent's refusal, with its reason where it has one.
    pub fn agent_refused(error: RequestError) -> Self {
        match error.reason {
            Some(reason) => Self::NotSigned { detail: error.detail, reason },
            None => Self::Refused { code: ErrorCode::AgentRefused, detail: error.detail.into() },
        }
    }

    pub fn internal(reason: impl fmt::Display) -> Self {
        Self::Internal(reason.to_string())
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    detail: &'a str,
    status_code: u16,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct InvalidBody<'a> {
    detail: &'a [Fault],
    status_code: u16,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(faults) => write!(f, "{} faults in the request", faults.0.len()),
            Self::Refused { detail, .. } => f.write_str(detail),
            Self::NotSigned { detail: text, .. } | Self::Paused { detail: text, .. } | Self::Internal(text) => {
                f.write_str(text)
            }
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Refused { code, .. } => code.status(),
            Self::NotSigned { .. } => ErrorCode::AgentRefused.status(),
            Self::Paused { .. } => ErrorCode::Busy.status(),
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status_code();
        let mut response = HttpResponse::build(status);
        if status == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = if let Self::Paused { seconds, .. } = self { *seconds } else { USUAL_PAUSE_SECONDS };
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        let (detail, code, reason) = match self {
            Self::Invalid(faults) => {
                return response.json(InvalidBody { detail: &faults.0, status_code: status.as_u16() });
            }
            Self::Refused { code, detail } => (detail.as_ref(), *code, None),
            Self::NotSigned { detail, reason } => (detail.as_str(), ErrorCode::AgentRefused, Some(reason.as_str())),
            Self::Paused { detail, .. } => (detail.as_str(), ErrorCode::Busy, None),
            Self::Internal(_) => (ErrorCode::InternalError.parts().2, ErrorCode::InternalError, None),
        };
        response.json(ErrorBody { detail, status_code: status.as_u16(), code: code.name(), reason })
    }
}

/// The last step of the OpenAPI document adds the errors of all operations.
impl Apiv2Errors for ApiError {
    fn update_error_definitions(_: &mut DefaultOperationRaw) {}

    fn update_definitions(_: &mut BTreeMap<String, DefaultSchemaRaw>) {}
}

impl From<Full> for ApiError {
    fn from(_: Full) -> Self {
        Self::code(ErrorCode::Busy)
    }
}

impl From<OverBudget> for ApiError {
    fn from(_: OverBudget) -> Self {
        Self::code(ErrorCode::Busy)
    }
}

//! What the codes of errors mean, for docs/reference/errors.md.

use super::ErrorCode;

impl ErrorCode {
    /// What the code means, as docs/reference/errors.md explains it: more than the usual sentence where that says little.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::AgentOffline => "The agent is offline",
            Self::AgentTimeout => "The agent gave no answer in time",
            Self::AgentRefused => "The agent refused: the policy of its server does not allow the request",
            Self::AgentError => "The agent failed; `detail` has the agent's message",
            Self::BadRequest => "The service could not understand the request",
            Self::QuotaExceeded => "The account's quota is reached; `detail` names the flag",
            Self::ReleaseIncomplete => {
                "Some programs of the agent's release are not here with the length and checksum that it names; `detail` names them"
            }
            Self::LoginFailed => "The user name or the password is wrong",
            Self::OtpRequired => {
                "The password is right, and the account needs a code of its authenticator app too: `otp`"
            }
            Self::TokenNotAllowed => {
                "The token of a program does not allow this: it never changes accounts, tokens, teams or grants, and changes what belongs to the whole account only with the scope `all` and the role for it"
            }
            Self::SecondFactorRequired => {
                "The service asks for a second factor that this session has not proved: set one up, or `POST /auth/step-up`"
            }
            Self::StepUpRequired => {
                "The session's last proof of identity is too old: `POST /auth/step-up`, then try again"
            }
            Self::NoPassword => "The account has no password: it signs in at the identity provider",
            Self::PasswordLoginOff => {
                "The service does not let this account sign in with a password (`--password-login`)"
            }
            Self::NotAuthenticated => "The request has no token",
            Self::HostNotAllowed => "The service does not answer under this host name",
            Self::NotFound => "It does not exist, or belongs to somebody else",
            Self::ContainerNotFound => "There is no such container",
            Self::MethodNotAllowed => "The address does not take this method",
            Self::InternalError => "The service failed; its log says more under the `X-Request-Id` of the answer",
            Self::Busy => "The service or its database is too busy or away; `Retry-After` says when to try again",
            Self::AgentDisconnected
            | Self::DockerError
            | Self::DockerUnavailable
            | Self::EmailTaken
            | Self::UsernameTaken
            | Self::InvalidCredentials
            | Self::TokenInvalid
            | Self::TokenExpired
            | Self::TokenRevoked
            | Self::TokenReused
            | Self::Forbidden
            | Self::NoRelease
            | Self::RolloutRunning
            | Self::RolloutEnded
            | Self::NothingToUpdate
            | Self::LastAdmin
            | Self::OwnsServers
            | Self::InvitationInvalid
            | Self::EnrolmentUsedUp
            | Self::RegistrationClosed
            | Self::SetupRequired
            | Self::OriginNotAllowed
            | Self::NoMetrics
            | Self::PayloadTooLarge => self.parts().2,
        }
    }
}

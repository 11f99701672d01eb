//! Why the container engine did not do what it was asked.

use signalbox_protocol::agent::RequestError;

use super::address::AddressError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("the container engine cannot be reached: {0}")]
    Unreachable(#[from] std::io::Error),
    #[error("the connection to the container engine broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the container engine gave no answer in time")]
    Silent,
    /// No container has this id or name.
    #[error("no such container")]
    NoSuchContainer,
    /// The engine's own words.
    #[error("{message}")]
    Refused { status: u16, message: String },
    #[error("the container engine's answer is not understood: {0}")]
    Unexpected(String),
}

impl EngineError {
    /// The meaning of an unsuccessful answer. Networks and images can also be 404, but always with a message; Podman has none
    /// for a container without statistics.
    pub fn of_status(status: u16, message: &str) -> Self {
        if status == 404 && (message.is_empty() || message.to_ascii_lowercase().contains("no such container")) {
            return Self::NoSuchContainer;
        }
        let message = if message.is_empty() { format!("the engine answered {status}") } else { message.to_owned() };
        Self::Refused { status, message }
    }

    /// Whether there was no engine at all.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Address(_) | Self::Unreachable(_) | Self::Broken(_) | Self::Silent => true,
            Self::NoSuchContainer | Self::Refused { .. } | Self::Unexpected(_) => false,
        }
    }

    /// Podman reads a running container's process, and fails when that ends in the meantime.
    pub fn is_of_an_ended_process(&self) -> bool {
        matches!(self, Self::Refused { status: 500, message } if message.contains("no such process"))
    }
}

impl From<EngineError> for RequestError {
    fn from(error: EngineError) -> Self {
        let code = match &error {
            EngineError::NoSuchContainer => "container_not_found",
            EngineError::Refused { .. } | EngineError::Unexpected(_) => "docker_error",
            EngineError::Address(_) | EngineError::Unreachable(_) | EngineError::Broken(_) | EngineError::Silent => {
                "docker_unavailable"
            }
        };
        Self::new(code, &error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_container_is_not_found() {
        let code = |status, message| RequestError::from(EngineError::of_status(status, message)).code;

        assert_eq!(code(404, "No such container: web"), "container_not_found");
        assert_eq!(code(404, "no container with name or ID \"web\" found: no such container"), "container_not_found");
        assert_eq!(code(404, ""), "container_not_found");
        assert_eq!(code(404, "network backend not found"), "docker_error");
        assert_eq!(code(409, "No such container: web"), "docker_error");
    }

    #[test]
    fn errors_have_the_engines_own_words() {
        let told =
            RequestError::from(EngineError::of_status(501, "configured logging driver does not support reading"));

        assert_eq!(told, RequestError::new("docker_error", "configured logging driver does not support reading"));
        assert_eq!(EngineError::of_status(500, "").to_string(), "the engine answered 500");
    }
}

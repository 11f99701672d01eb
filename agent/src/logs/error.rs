//! Why a log is not read.

use std::io;

use signalbox_protocol::agent::RequestError;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("reading logs is switched off on this server")]
    Off,
    #[error("access to containers is switched off on this server")]
    DockerOff,
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("this agent cannot read the source {0:?}")]
    Unsupported(String),
    #[error("this server has neither a journal nor a syslog file")]
    NoSystemLog,
    #[error("the path is not among those that this server lets be read")]
    PathNotAllowed,
    #[error("the path leads through a symbolic link")]
    Symlink,
    #[error("there is no such file")]
    NotFound,
    #[error("this is not a regular file")]
    NotAFile,
    #[error("the agent may not read this file")]
    NotReadable,
    #[error("the log cannot be read: {0}")]
    Broken(io::Error),
    #[error("the agent reads too many logs already")]
    Busy,
    #[error("the log has ended")]
    Ended,
    #[error("the question cannot be understood: {0}")]
    Question(String),
    #[error("the pattern cannot be used: {0}")]
    Pattern(String),
}

impl LogError {
    fn code(&self) -> &'static str {
        match self {
            Self::Off | Self::DockerOff => "agent_refused",
            Self::Missing(_) | Self::Question(_) => "invalid_request",
            Self::Unsupported(_) => "unsupported_source",
            Self::NoSystemLog => "no_system_log",
            Self::PathNotAllowed | Self::Symlink => "path_not_allowed",
            Self::NotFound => "not_found",
            Self::NotAFile => "not_a_file",
            Self::NotReadable => "not_readable",
            Self::Broken(_) => "log_broken",
            Self::Busy => "agent_busy",
            Self::Ended => "log_ended",
            Self::Pattern(_) => "invalid_pattern",
        }
    }
}

impl From<LogError> for RequestError {
    fn from(error: LogError) -> Self {
        Self::new(error.code(), &error.to_string())
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::NotReadable,
            _ => Self::Broken(error),
        }
    }
}

impl From<rustix::io::Errno> for LogError {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

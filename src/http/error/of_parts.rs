//! What the errors of agents, containers and the history are for the client.

use super::{ApiError, ErrorCode};
use crate::docker::DockerError;
use crate::metrics::query::HistoryError;
use crate::registry::CallError;

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Store(error) => error.into(),
            HistoryError::Codec(_) | HistoryError::Block(_) | HistoryError::Interrupted => Self::internal(error),
            HistoryError::Restless | HistoryError::Busy => Self::code(ErrorCode::Busy),
            HistoryError::TooMuch => Self::Refused { code: ErrorCode::BadRequest, detail: error.to_string().into() },
        }
    }
}

impl From<DockerError> for ApiError {
    fn from(error: DockerError) -> Self {
        match error {
            DockerError::Call(error) => error.into(),
            DockerError::Nonsense => Self::Refused { code: ErrorCode::AgentError, detail: error.to_string().into() },
        }
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Offline => Self::code(ErrorCode::AgentOffline),
            CallError::Timeout => Self::code(ErrorCode::AgentTimeout),
            CallError::Busy => Self::code(ErrorCode::Busy),
            CallError::Unreachable => Self::Refused { code: ErrorCode::Busy, detail: error.to_string().into() },
            CallError::Disconnected => Self::code(ErrorCode::AgentDisconnected),
            CallError::Agent(error) => Self::of_agent(error),
        }
    }
}

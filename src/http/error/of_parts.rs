//! What the errors of agents, recordings and the history are for the client.

use super::{ApiError, ErrorCode};
use crate::metrics::query::HistoryError;
use crate::recordings::RecordingError;
use crate::registry::CallError;
use crate::ws::terminal::OpenError;

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

impl From<RecordingError> for ApiError {
    fn from(error: RecordingError) -> Self {
        match error {
            RecordingError::NotFound => Self::not_found("Recording not found"),
            RecordingError::Call(error) => error.into(),
        }
    }
}

impl From<OpenError> for ApiError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::Random(error) => Self::internal(error),
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

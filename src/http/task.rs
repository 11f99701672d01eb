//! Work that must not be left half done.

use std::future::Future;

use super::error::ApiError;

/// Runs some work to its end in a separate task, even if the client disconnects.
pub async fn run_detached<T: 'static>(
    work: impl Future<Output = Result<T, ApiError>> + 'static,
) -> Result<T, ApiError> {
    actix_web::rt::spawn(work).await.map_err(ApiError::internal)?
}

//! What is not to be left half done.

use std::future::Future;

use super::error::ApiError;

/// Does something in a task of its own, to its end, even if the client goes away meanwhile.
pub async fn to_the_end<T: 'static>(work: impl Future<Output = Result<T, ApiError>> + 'static) -> Result<T, ApiError> {
    actix_web::rt::spawn(work).await.map_err(ApiError::internal)?
}

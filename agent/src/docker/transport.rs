//! One HTTP request to the engine, on a connection of its own.
//!
//! A Unix socket costs nothing to open, and a connection that serves one request cannot be found dead by the next.

use std::path::Path;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::error::EngineError;

/// The request needs a host, and the engine ignores which.
const ANY_HOST: &str = "engine";

/// Sends a request without a body and returns the beginning of the answer. The connection ends with the answer's body.
pub async fn send(socket: &Path, method: Method, path: &str) -> Result<Response<Incoming>, EngineError> {
    let request = Request::builder().method(method).uri(path).header(HOST, ANY_HOST).body(Empty::<Bytes>::new());
    let request = request.map_err(|error| EngineError::Unexpected(error.to_string()))?;
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

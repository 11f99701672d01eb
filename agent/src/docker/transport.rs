//! One HTTP request to the engine, on a connection of its own.
//!
//! A Unix socket costs nothing to open, and a connection that serves one request cannot be found dead by the next.

use std::path::Path;

use hyper::body::{Body, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::error::EngineError;

/// The engine asks for a host and does not care which.
const ANY_HOST: HeaderValue = HeaderValue::from_static("engine");

/// Sends a request and gives the beginning of the answer. The connection ends with its body.
pub async fn send<B>(socket: &Path, mut request: Request<B>) -> Result<Response<Incoming>, EngineError>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    request.headers_mut().insert(HOST, ANY_HOST);
    Ok(sender.send_request(request).await?)
}

//! What happens around every request: its id, its log line, its metrics, and the format of the framework's own errors.

use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{HttpMessage, HttpRequest, ResponseError, web};
use tracing_actix_web::RequestId;
use uuid::Uuid;

use super::answered;
use super::error::{ApiError, ErrorCode};
use super::host::check_host;
use super::openapi::Document;
use super::path::API;
use super::request_id;
use super::routes::READINESS;
use super::unread::{Holding, Unread};
use crate::state::State;
use crate::ws::handover::Wire;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Wraps every request.
pub async fn around(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + Unpin + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let started = Instant::now();
    let request_id = id_of(&request);
    let method = request.method().clone();
    // A WebSocket is opened only with GET.
    if method == Method::HEAD && !request.head().upgrade() {
        // HEAD works wherever GET does; the connection itself omits the body.
        request.head_mut().method = Method::GET;
    }
    let answering = request.conn_data::<Wire>().map(Wire::answering);
    let unread = Unread::of(&mut request);
    let state = request.app_data::<web::Data<State>>();
    let running = state.and_then(|state| state.limits.requests.began());
    let refusal = state.and_then(|state| check_host(request.request(), state).err());
    let mut response = match refusal {
        Some(error) => ServiceResponse::new(request.into_parts().0, error.error_response()).map_into_right_body(),
        None => with_error_shape(next.call(request).await?),
    };
    drop(running);
    let mut text = Uuid::encode_buffer();
    let id: &str = request_id.as_hyphenated().encode_lower(&mut text);
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    // No browser may guess another content type: so no response becomes a script by its content.
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if response.request().path().starts_with(API) && !response.headers().contains_key(header::CACHE_CONTROL) {
        // Tokens, keys, and private data: no cache on the way may keep it (RFC 6749, 5.1).
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    record(&response, &method, id, started);
    Ok(response.map_body(|_, body| Holding::new(body, unread, answering)))
}

/// The request's id, from its span if it has one.
fn id_of(request: &ServiceRequest) -> Uuid {
    request.extensions().get::<RequestId>().map_or_else(request_id::fresh, |id| Uuid::from(*id))
}

/// Turns errors that the framework answers with an empty body into the format of all errors.
fn with_error_shape<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
) -> ServiceResponse<actix_web::body::EitherBody<B>> {
    let code = match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::PayloadTooLarge,
        StatusCode::BAD_REQUEST => ErrorCode::BadRequest,
        _ => return response.map_into_left_body(),
    };
    if is_ours(&response) {
        return response.map_into_left_body();
    }
    let request = response.request().clone();
    let mut shaped = ApiError::code(code).error_response();
    if let ErrorCode::MethodNotAllowed = code
        && let Some(allow) = allowed_methods(&request)
    {
        shaped.headers_mut().insert(header::ALLOW, allow);
    }
    ServiceResponse::new(request, shaped).map_into_right_body()
}

/// Whether a handler wrote the response: an error, or the interface's page. The framework's own errors are plain text.
fn is_ours<B>(response: &ServiceResponse<B>) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| text.starts_with("application/json") || text.starts_with("text/html"))
}

/// The methods that the OpenAPI document has for a request's path.
fn allowed_methods(request: &HttpRequest) -> Option<HeaderValue> {
    let document = request.app_data::<web::Data<Document>>()?;
    HeaderValue::from_str(&document.methods(&request.match_pattern()?)).ok()
}

fn record<B>(response: &ServiceResponse<B>, method: &Method, id: &str, started: Instant) {
    let status = response.status();
    let route = response.request().match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let elapsed = started.elapsed();
    answered::count(&route, status, elapsed);
    // Readiness is checked often, and the part that is unavailable has logged that itself.
    if status.is_server_error() && route != READINESS {
        let error = response.response().error().map(ToString::to_string).unwrap_or_default();
        tracing::error!(request.id = id, %method, route, status = status.as_u16(), error, "a request failed");
    } else {
        tracing::debug!(
            request.id = id, %method, route, status = status.as_u16(), elapsed_us = elapsed.as_micros() as u64,
            "a request was answered"
        );
    }
}

/// Whether the spans of requests are logged, at `debug`. That does not change while the service runs.
pub fn are_spans_read() -> bool {
    !span("", &Method::GET, "").is_disabled()
}

/// A request's span. It has no query, which may contain a token.
fn span(id: &str, method: &Method, path: &str) -> tracing::Span {
    tracing::debug_span!("request", request.id = id, %method, path)
}

/// Creates a request's span, if it is logged.
pub struct QuietSpan;

impl tracing_actix_web::RootSpanBuilder for QuietSpan {
    fn on_request_start(request: &ServiceRequest) -> tracing::Span {
        span(&id_of(request).to_string(), request.method(), request.path())
    }

    fn on_request_end<B: MessageBody>(_: tracing::Span, _: &Result<ServiceResponse<B>, actix_web::Error>) {}
}

//! What happens around every request: its id, its line in the log, its place in the metrics, and the shape of the
//! errors that the framework answers by itself.

use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{HttpMessage, ResponseError, web};
use tracing_actix_web::RequestId;
use uuid::Uuid;

use super::answered;
use super::error::{ApiError, ErrorCode};
use super::host::check_host;
use super::openapi::Document;
use super::path::API;
use super::request_id;
use super::routes::READINESS;
use super::unread::Unread;
use crate::state::State;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Wraps every request.
pub async fn around(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let started = Instant::now();
    let request_id = id_of(&request);
    let method = request.method().clone();
    // A socket is opened by GET alone.
    if method == Method::HEAD && !request.head().upgrade() {
        // Wherever there is GET there is HEAD; the connection leaves the body out by itself.
        request.head_mut().method = Method::GET;
    }
    let unread = Unread::of(&mut request);
    let refusal = request.app_data::<web::Data<State>>().and_then(|state| check_host(request.request(), state).err());
    let mut response = match refusal {
        Some(error) => ServiceResponse::new(request.into_parts().0, error.error_response()).map_into_right_body(),
        None => with_error_shape(next.call(request).await?),
    };
    let mut text = Uuid::encode_buffer();
    let id: &str = request_id.as_hyphenated().encode_lower(&mut text);
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    // What a browser is told a thing is, it is: no answer becomes a script by its content.
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if response.request().path().starts_with(API) && !response.headers().contains_key(header::CACHE_CONTROL) {
        // Tokens, keys, and what only its owner may see: nobody on the way keeps it (RFC 6749, 5.1).
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    record(&response, &method, id, started);
    Ok(match unread {
        None => response.map_into_left_body(),
        Some(unread) => response.map_body(|_, body| unread.held_by(body)).map_into_right_body(),
    })
}

/// The request's id: that of its span where it has one.
fn id_of(request: &ServiceRequest) -> Uuid {
    request.extensions().get::<RequestId>().map_or_else(request_id::fresh, |id| Uuid::from(*id))
}

/// Gives errors that the framework answers with an empty body the shape that all errors have.
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
    let allow = response.request().match_pattern().and_then(|pattern| allowed_methods(&response, &pattern));
    let request = response.request().clone();
    let mut shaped = ApiError::code(code).error_response();
    if let (ErrorCode::MethodNotAllowed, Some(allow)) = (code, allow) {
        shaped.headers_mut().insert(header::ALLOW, allow);
    }
    ServiceResponse::new(request, shaped).map_into_right_body()
}

/// Whether a handler made it: the error of a program, or the interface's page. The framework's own errors are plain text.
fn is_ours<B>(response: &ServiceResponse<B>) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| text.starts_with("application/json") || text.starts_with("text/html"))
}

/// The methods that the document names for a path.
fn allowed_methods<B>(response: &ServiceResponse<B>, pattern: &str) -> Option<HeaderValue> {
    let document = response.request().app_data::<web::Data<Document>>()?;
    HeaderValue::from_str(&document.methods(pattern)).ok()
}

fn record<B>(response: &ServiceResponse<B>, method: &Method, id: &str, started: Instant) {
    let status = response.status();
    let route = response.request().match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let elapsed = started.elapsed();
    answered::count(&route, status, elapsed);
    // Whether it is ready is asked again and again, and whatever is away has told so itself.
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

/// Whether anybody reads requests' spans: at `debug`. It does not change while the service runs.
pub fn are_spans_read() -> bool {
    !span("", &Method::GET, "").is_disabled()
}

/// A request's span. It names no query, which may hold a token.
fn span(id: &str, method: &Method, path: &str) -> tracing::Span {
    tracing::debug_span!("request", request.id = id, %method, path)
}

/// Makes a request's span, where it is read.
pub struct QuietSpan;

impl tracing_actix_web::RootSpanBuilder for QuietSpan {
    fn on_request_start(request: &ServiceRequest) -> tracing::Span {
        span(&id_of(request).to_string(), request.method(), request.path())
    }

    fn on_request_end<B: MessageBody>(_: tracing::Span, _: &Result<ServiceResponse<B>, actix_web::Error>) {}
}

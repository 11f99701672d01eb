//! Which pages may act on behalf of their visitors.

use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::HttpRequest;
use actix_web::http::header;

use super::error::{ApiError, ErrorCode};
use crate::state::State;

/// Whether the log has a warning about a page of another origin.
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

/// The most characters of an origin or a host that are logged.
const SHOWN: usize = 200;

/// Refuses pages of other sites, which would use their visitor's browser. Clients that are no browsers send no origin.
pub fn check_origin(request: &HttpRequest, state: &State) -> Result<(), ApiError> {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default().trim_end_matches('/');
    let config = &state.config;
    let named = config.allowed_origins.iter().map(String::as_str).chain(config.public_url.as_deref().map(origin_of));
    let is_named = named.into_iter().any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin));
    if is_named || is_same_host(request, origin) {
        return Ok(());
    }
    warn(origin, request.connection_info().host());
    Err(ApiError::code(ErrorCode::OriginNotAllowed))
}

/// Whether the page is from the requested host, or from the host that a proxy in front was asked for: a page cannot set
/// the headers that contain these.
fn is_same_host(request: &HttpRequest, origin: &str) -> bool {
    let Some((_, named)) = origin.split_once("://") else { return false };
    let asked = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let connection = request.connection_info();
    asked.into_iter().chain([connection.host()]).any(|host| host.eq_ignore_ascii_case(named))
}

/// Tells the operator of a proxy that hides the host why nobody can sign in. Only once, so that deliberate attempts do
/// not fill the log.
fn warn(origin: &str, host: &str) {
    let [origin, host] = [origin, host].map(|text| text.chars().take(SHOWN).collect::<String>());
    if HAS_WARNED.swap(true, Ordering::Relaxed) {
        return tracing::debug!(origin, host, "a page of another origin was refused");
    }
    tracing::warn!(
        origin,
        host,
        "a page of another origin was refused; if it is this service's own, the proxy in front must forward the host, \
         or --public-url must be set"
    );
}

/// The scheme and authority of an address.
fn origin_of(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(start..).and_then(|rest| rest.find('/')).map_or(url.len(), |at| start + at);
    url.get(..end).unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_and_authority() {
        assert_eq!(origin_of("https://box.example.com/app/"), "https://box.example.com");
        assert_eq!(origin_of("https://box.example.com:8443"), "https://box.example.com:8443");
    }
}

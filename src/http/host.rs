//! Checks the host names of requests to a service that listens only on loopback.
//!
//! A page of any site can point its own name to 127.0.0.1 (DNS rebinding). The visitor's browser then treats the
//! service as the page's own origin, and the page reads and writes what it likes. But its name is in `Host`.

use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::HttpRequest;
use actix_web::http::header;

use super::error::{ApiError, ErrorCode};
use crate::address::{authority_of, host_of, is_loopback};
use crate::networks;
use crate::state::State;

/// Whether the reason for a refused name was logged; repeated attempts must not fill the log.
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

/// The most characters of a host that are logged.
const SHOWN: usize = 200;

/// Refuses names that are neither this machine's nor the service's own. A trusted proxy is responsible for the names
/// that it forwards. Clients that are no browsers may omit the name.
pub fn check_host(request: &HttpRequest, state: &State) -> Result<(), ApiError> {
    if !state.config.is_on_loopback() {
        return Ok(());
    }
    let in_header = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // Over HTTP/2 the name is in the request's authority.
    let Some(asked) = in_header.or_else(|| request.uri().authority().map(|authority| authority.as_str())) else {
        return Ok(());
    };
    let is_own = |url: &String| host_of(authority_of(url)).eq_ignore_ascii_case(host_of(asked));
    let is_trusted =
        || request.peer_addr().is_some_and(|peer| networks::any_has(&state.config.trusted_proxies, peer.ip()));
    if is_loopback(host_of(asked)) || state.config.public_url.as_ref().is_some_and(is_own) || is_trusted() {
        return Ok(());
    }
    let host: String = asked.chars().take(SHOWN).collect();
    if HAS_WARNED.swap(true, Ordering::Relaxed) {
        tracing::debug!(host, "a request for another host name was refused");
    } else {
        tracing::warn!(
            host,
            "a request for another host name was refused; if it is this service's own name, set --public-url, or add \
             the proxy that forwarded it to --trusted-proxies"
        );
    }
    Err(ApiError::code(ErrorCode::HostNotAllowed))
}

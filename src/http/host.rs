//! Under which names a service is asked that listens on loopback alone.
//!
//! A page of any site can have its own name lead to 127.0.0.1 (DNS rebinding): to the visitor's browser it is then of the
//! service's origin, and reads and writes what it likes. Its name is in `Host` all the same.

use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::HttpRequest;
use actix_web::http::header;

use super::error::{ApiError, ErrorCode};
use crate::address::{authority_of, host_of, is_loopback};
use crate::networks;
use crate::state::State;

/// The operator reads once why a name is refused; repeated attempts do not fill the log.
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

/// Characters of a host that are logged at most.
const SHOWN: usize = 200;

/// Refuses a name that is neither this machine's nor the service's own. A trusted proxy answers for the names that it
/// passes on. Who is no browser may leave the name out.
pub fn check_host(request: &HttpRequest, state: &State) -> Result<(), ApiError> {
    if !state.config.is_on_loopback() {
        return Ok(());
    }
    let in_header = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // Over HTTP/2 it stands in the address.
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
            "a request for another host name was refused; if it is this service's own, --public-url must say it, or \
             --trusted-proxies the proxy that passed it on"
        );
    }
    Err(ApiError::code(ErrorCode::HostNotAllowed))
}

//! Web Push (RFC 8030): a request to the push service of a browser. Its content is encrypted for that browser alone
//! ([`encryption`], RFC 8291), and the service names itself with its own key ([`key`], RFC 8292).

mod encryption;
mod key;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::error::Unspecified;
use reqwest::Url;
use signalbox_protocol::Timestamp;

pub use encryption::{MAX_TEXT_BYTES, Subscriber};
pub use key::{PushKey, PushKeyError};

use super::format::{Push, Request};
use crate::random;

/// The text is padded to a multiple of this, so that its length says little about the alert.
const PADDING_STEP: usize = 1_024;

/// The answers that mean that a browser has ended its subscription (RFC 8030, 7.3: 404 also for one that expired).
const GONE: &[u16] = &[404, 410];

/// Why no request can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    #[error("the address of the browser's push service is not valid")]
    Endpoint,
    #[error("the message could not be encrypted for the browser")]
    Encryption,
}

/// Builds the request, with a new key and a new salt each time. `contact` is the address at which the push service reaches
/// the service's operator.
pub fn request(push: &Push, key: &PushKey, contact: Option<&str>, now: Timestamp) -> Result<Request, PushError> {
    let url = Url::parse(&push.endpoint).map_err(|_| PushError::Endpoint)?;
    let failed = |Unspecified| PushError::Encryption;
    let own = PrivateKey::generate(&ECDH_P256).map_err(failed)?;
    let salt = random::bytes().map_err(|_| PushError::Encryption)?;
    let padded = push.text.len().next_multiple_of(PADDING_STEP);
    let body = encryption::encrypt(push.text.as_bytes(), padded, &push.subscriber, &own, &salt).map_err(failed)?;
    let mut headers = vec![
        ("Content-Type", "application/octet-stream".to_owned()),
        ("Content-Encoding", "aes128gcm".to_owned()),
        ("TTL", push.ttl_seconds.to_string()),
        ("Urgency", push.urgency.to_owned()),
    ];
    headers.extend(push.topic.clone().map(|topic| ("Topic", topic)));
    let authorization = key.authorization(&url, contact, now).map_err(failed)?;
    Ok(Request {
        url: push.endpoint.clone(),
        headers,
        secrets: vec![("Authorization", authorization)],
        body,
        gone: GONE,
    })
}

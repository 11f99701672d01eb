//! Explains errors on the way to the service in words that say what to do.

use std::io;

use rustls::{Error as TlsFault, InvalidMessage};
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::http::header::LOCATION;

use crate::tls_words;

/// How to trust an authority that the system does not.
const TRUSTING: &str = "--ca-file names one of your own";

/// Why there is no TLS.
pub fn of_tls(error: &io::Error) -> String {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsFault>());
    match fault {
        Some(fault @ TlsFault::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            let words = tls_words::of(fault, TRUSTING);
            format!("{words}; if it is the service, its address begins with http://")
        }
        Some(fault) => tls_words::of(fault, TRUSTING),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the connection was closed in the middle of it".to_owned()
        }
        None => error.to_string(),
    }
}

/// Why the service did not accept the WebSocket.
pub fn of_upgrade(error: &WsError) -> String {
    let WsError::Http(response) = error else {
        return match error {
            WsError::Protocol(_) | WsError::HttpFormat(_) => {
                format!("what answers there does not speak HTTP, or only over TLS with https:// ({error})")
            }
            _ => error.to_string(),
        };
    };
    let status = response.status();
    if status.is_redirection() {
        let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        let place = place.map(|place| format!(" to {place}")).unwrap_or_default();
        return format!("it answers {status}, which leads elsewhere{place}: --url must be the address at its end");
    }
    match status.as_u16() {
        // The answer of TLS servers to plain HTTP.
        400 => format!("it answers {status}; if its port speaks TLS, the address begins with https://"),
        502..=504 => format!("the proxy in front of it answers {status}: the service behind it is away"),
        _ => format!("it answers {status}: is this the address of a Signalbox, with the path where a proxy adds one?"),
    }
}

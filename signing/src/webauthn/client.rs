//! What a browser says about a request to an authenticator (section 5.8.1).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::WebauthnError;

/// The kinds of requests.
pub const CREATE: &str = "webauthn.create";
pub const GET: &str = "webauthn.get";

#[derive(Deserialize)]
struct Wire {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: Option<bool>,
    #[serde(rename = "topOrigin", default)]
    top_origin: Option<String>,
}

/// The browser's data.
#[derive(Debug, Clone)]
pub struct ClientData {
    pub kind: String,
    pub challenge: Vec<u8>,
    pub origin: String,
    is_embedded: bool,
}

impl ClientData {
    pub fn parse(json: &[u8]) -> Result<Self, WebauthnError> {
        let malformed = WebauthnError::MalformedClientData;
        let wire: Wire = serde_json::from_slice(json).map_err(|_| malformed)?;
        let challenge = BASE64_URL_SAFE_NO_PAD.decode(&wire.challenge).map_err(|_| malformed)?;
        let is_embedded = wire.cross_origin == Some(true) || wire.top_origin.is_some();
        Ok(Self { kind: wire.kind, challenge, origin: wire.origin, is_embedded })
    }

    /// Whether the page was in a frame of another page, which could lure people into signing.
    pub fn is_embedded(&self) -> bool {
        self.is_embedded
    }
}

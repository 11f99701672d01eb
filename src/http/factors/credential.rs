//! Wire types of codes and of what browsers send about passkeys: `PublicKeyCredential.toJSON()`.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use secrecy::SecretString;
use serde_json::json;

use crate::auth::webauthn::{Assertion, Registration};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{TEXT, bounded, described, string, text_field};

/// The longest text that can be a code.
const MAX_CODE: usize = 8_192;

text_field!(
    /// A code of an authenticator app, or a recovery code: any text, because it is only compared.
    Otp(SecretString),
    |text, location| bounded(text, 1, MAX_CODE, location).map(SecretString::from),
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_CODE, "pattern": TEXT, "example": "287082" })
);

text_field!(
    /// An [`Otp`] of a form, in which a field that nobody has filled in is empty.
    FormOtp(Option<SecretString>),
    |text, location| {
        let text = bounded(text, 0, MAX_CODE, location)?;
        Ok((!text.is_empty()).then(|| text.into()))
    },
    json!({ "type": "string", "maxLength": MAX_CODE, "pattern": TEXT, "example": "287082" })
);

/// The longest text of bytes. Authenticators send some hundred bytes, and attestations some thousand.
const MAX_LENGTH: usize = 16_384;

text_field!(
    /// Bytes in base64url without padding.
    Base64Url(Vec<u8>),
    |text, location| {
        let text = bounded(text, 0, MAX_LENGTH, location)?;
        let decoded = BASE64_URL_SAFE_NO_PAD.decode(&text);
        decoded.map_err(|_| Faults::at(location, "value_error.base64url", "value is not base64url without padding"))
    },
    json!({ "type": "string", "maxLength": MAX_LENGTH, "pattern": "^[A-Za-z0-9_-]*$", "example": "AQIDBA" })
);

/// A new passkey, as `PublicKeyCredential.toJSON()` describes it.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct CredentialIn {
    response: AttestationIn,
}

/// The answer of an authenticator that made a passkey.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AttestationIn {
    #[deserr(rename = "clientDataJSON")]
    #[serde(rename = "clientDataJSON")]
    client_data: Base64Url,
    #[deserr(rename = "attestationObject")]
    #[serde(rename = "attestationObject")]
    attestation_object: Base64Url,
}

impl From<CredentialIn> for Registration {
    fn from(input: CredentialIn) -> Self {
        let AttestationIn { client_data, attestation_object } = input.response;
        Self { client_data: client_data.0, attestation_object: attestation_object.0 }
    }
}

/// The answer of a passkey to a challenge, as `PublicKeyCredential.toJSON()` describes it.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AssertionIn {
    /// The id that the authenticator gave the passkey.
    id: Base64Url,
    response: SignatureIn,
}

/// What the passkey signed.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct SignatureIn {
    #[deserr(rename = "clientDataJSON")]
    #[serde(rename = "clientDataJSON")]
    client_data: Base64Url,
    #[deserr(rename = "authenticatorData")]
    #[serde(rename = "authenticatorData")]
    authenticator_data: Base64Url,
    signature: Base64Url,
    #[deserr(default, rename = "userHandle")]
    #[serde(rename = "userHandle")]
    user_handle: Option<Base64Url>,
}

impl From<AssertionIn> for Assertion {
    fn from(input: AssertionIn) -> Self {
        let SignatureIn { client_data, authenticator_data, signature, user_handle } = input.response;
        Self {
            credential_id: input.id.0,
            client_data: client_data.0,
            authenticator_data: authenticator_data.0,
            signature: signature.0,
            user_handle: user_handle.map(|Base64Url(handle)| handle),
        }
    }
}

//! What operators signed, in requests. The service checks its shape and carries it: the agent alone decides.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use deserr::{Deserr, IntoValue, Sequence, Value, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_protocol::agent::{AgentInfo, SigningInfo};
use signalbox_protocol::signed::{MAX_PAYLOAD_CHARACTERS, MAX_SIGNATURE_CHARACTERS, MAX_SIGNATURES, Signature, Signed};
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, not_a_member};
use super::extract::field::{TEXT, bounded, described, string, text_field};
use crate::state::State;

/// With the rest of a request line it fits in 8 KiB, which is what nginx lets pass unless it is configured. Three signatures with
/// RSA keys of 4096 bits and a payload have 7,000 characters.
const MAX_QUERY_CHARACTERS: usize = 8_000;

text_field!(
    /// The bytes that were signed, in base64: JSON that names the servers, what is to run, and when.
    PayloadText(String),
    |text, location| bounded(text, 1, MAX_PAYLOAD_CHARACTERS, location),
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_PAYLOAD_CHARACTERS, "pattern": TEXT })
);

text_field!(
    /// A signature or a part of it.
    SignatureText(String),
    |text, location| bounded(text, 1, MAX_SIGNATURE_CHARACTERS, location),
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_SIGNATURE_CHARACTERS, "pattern": TEXT })
);

text_field!(
    /// What operators signed, where a request has no body: the JSON of `signed`, in base64url without padding.
    SignedText(Signed),
    |text, location| {
        let text = bounded(text, 1, MAX_QUERY_CHARACTERS, location)?;
        let signed = BASE64_URL_SAFE_NO_PAD.decode(&text).ok().and_then(|json| serde_json::from_slice(&json).ok());
        let signed = signed.filter(Signed::is_bounded);
        signed.ok_or_else(|| Faults::at(location, "value_error.signed", "value is not base64url of JSON with payload and signatures"))
    },
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARACTERS, "pattern": "^[A-Za-z0-9_-]+$" })
);

/// The kinds of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureKind {
    Sshsig,
    Webauthn,
}

impl Deserr<Faults> for SignatureKind {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match string(value, location)?.as_str() {
            "sshsig" => Ok(Self::Sshsig),
            "webauthn" => Ok(Self::Webauthn),
            _ => Err(not_a_member(&["sshsig", "webauthn"], location)),
        }
    }
}

/// A signature of the payload's bytes.
#[derive(Debug, Deserr)]
#[deserr(error = Faults)]
pub struct SignatureIn {
    #[deserr(rename = "type")]
    kind: SignatureKind,
    signature: SignatureText,
    /// Of a passkey alone, like the other.
    #[deserr(default)]
    client_data_json: Option<SignatureText>,
    #[deserr(default)]
    authenticator_data: Option<SignatureText>,
}

impl CrossCheck for SignatureIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let has_parts = fields.is_given("client_data_json") && fields.is_given("authenticator_data");
        if fields.sound("type") == Some(SignatureKind::Webauthn) && !has_parts {
            let msg = "a signature of a passkey needs client_data_json and authenticator_data";
            return Err(Faults::at(fields.location, "value_error.signature", msg));
        }
        Ok(())
    }
}

/// Signatures of different people.
#[derive(Debug)]
pub struct SignaturesIn(Vec<CrossChecked<SignatureIn>>);

impl Deserr<Faults> for SignaturesIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        // Counted first, so that no list is read that is longer than any may be.
        if let Value::Sequence(items) = &value
            && !(1..=MAX_SIGNATURES).contains(&items.len())
        {
            return Err(Faults::at(location, "value_error.signatures", "ensure that there are 1 to 16 signatures"));
        }
        Vec::deserialize_from_value(value, location).map(Self)
    }
}

/// The two kinds of signatures.
fn kinds() -> serde_json::Value {
    let text = || json!({ "type": "string", "minLength": 1, "maxLength": MAX_SIGNATURE_CHARACTERS, "pattern": TEXT });
    let told = |what: &str| {
        let mut schema = text();
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("description".to_owned(), what.into());
        }
        schema
    };
    json!([
        {
            "type": "object",
            "description": "Of an SSH key, as `ssh-keygen -Y sign -n signalbox-command-v1` writes it.",
            "required": ["type", "signature"],
            "properties": {
                "type": { "type": "string", "enum": ["sshsig"] },
                "signature": told("The text with its first and last line."),
            },
        },
        {
            "type": "object",
            "description": "Of a passkey. Its challenge is the SHA-256 of the payload's bytes.",
            "required": ["type", "signature", "client_data_json", "authenticator_data"],
            "properties": {
                "type": { "type": "string", "enum": ["webauthn"] },
                "signature": told("In base64url, like the others."),
                "client_data_json": told("What the browser said."),
                "authenticator_data": told("What the authenticator said."),
            },
        },
    ])
}

described!(
    SignaturesIn,
    json!({ "type": "array", "minItems": 1, "maxItems": MAX_SIGNATURES, "items": { "oneOf": kinds() } })
);

described!(SignatureIn, json!({ "type": "object", "oneOf": kinds() }));

/// What operators signed for this, for servers that ask for signatures.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct SignedOrder {
    payload: PayloadText,
    signatures: SignaturesIn,
}

impl From<SignedOrder> for Signed {
    fn from(input: SignedOrder) -> Self {
        Self {
            payload: input.payload.0,
            signatures: input.signatures.0.into_iter().map(|CrossChecked(input)| input.into()).collect(),
        }
    }
}

impl From<SignatureIn> for Signature {
    fn from(input: SignatureIn) -> Self {
        let SignatureIn { kind, signature, client_data_json, authenticator_data } = input;
        match (kind, client_data_json, authenticator_data) {
            (SignatureKind::Webauthn, Some(client_data), Some(authenticator_data)) => Self::Webauthn {
                client_data_json: client_data.0,
                authenticator_data: authenticator_data.0,
                signature: signature.0,
            },
            (SignatureKind::Sshsig | SignatureKind::Webauthn, ..) => Self::Sshsig { signature: signature.0 },
        }
    }
}

/// What an agent asks of those who sign commands, terminals and actions on containers.
#[derive(Debug, Clone, Serialize, Deserialize, Apiv2Schema)]
pub struct SigningOut {
    /// What signers call this server, in `servers` of payloads.
    name: String,
    /// How many different people have to sign.
    approvals: u32,
    /// Whose signatures count, as the agent says. Empty for older agents.
    #[serde(default)]
    signers: Vec<SignerOut>,
    /// How many more there are than these.
    #[serde(default)]
    more_signers: u32,
}

/// A key whose signatures count.
#[derive(Debug, Clone, Serialize, Deserialize, Apiv2Schema)]
pub struct SignerOut {
    /// The names of the person in the file of signers.
    name: String,
    /// The type of the key, such as `ssh-ed25519`, or `passkey`.
    kind: String,
    /// Of the public key: `SHA256:...`.
    fingerprint: String,
}

/// What the agent of a server asks of those who sign, as far as it has said so. Refuses what is signed for an agent that does not
/// check signatures: an older one, or one whose policy does not ask for them. It would run the command as if nobody had signed it.
pub async fn checked_signing(
    state: &State,
    owner_id: Uuid,
    server_id: Uuid,
    capability: &'static str,
) -> Result<Option<SigningInfo>, ApiError> {
    let server = state.store.find_server(owner_id, server_id).await?;
    let Some(server) = server else { return Err(ApiError::not_found("Server not found")) };
    let info = server.record.agent.as_deref().and_then(|text| serde_json::from_str::<AgentInfo>(text).ok());
    let is_checked = info.as_ref().is_none_or(|info| info.capabilities.iter().any(|name| name == capability));
    if is_checked {
        return Ok(info.and_then(|info| info.signing).map(|signing| *signing));
    }
    let detail = format!(
        "The agent of {} does not check signatures here: update it, set its policy to \"signed\", or leave `signed` out",
        server.record.name
    );
    Err(ApiError::Refused { code: ErrorCode::AgentRefused, detail: detail.into() })
}

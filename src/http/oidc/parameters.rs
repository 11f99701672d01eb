//! What the addresses and forms contain.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use secrecy::SecretString;
use serde_json::json;

use crate::http::extract::fault::Faults;
use crate::http::extract::field::{bounded, described, string};

/// The longest page that can be returned to; it has to fit in the cookie.
const MAX_RETURN: usize = 1_000;

/// The longest parameter that is read when the provider sends the browser back.
const MAX_PARAMETER: usize = 4_000;

/// A page of this service: a path, perhaps with a query.
#[derive(Debug, Clone)]
pub struct LocalPage(pub String);

impl Deserr<Faults> for LocalPage {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = bounded(string(value, location)?, 1, MAX_RETURN, location)?;
        let msg = "value is not the path of a page, such as /alerts";
        is_local(&text).then_some(Self(text)).ok_or_else(|| Faults::at(location, "value_error.path", msg))
    }
}

described!(
    LocalPage,
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_RETURN, "pattern": "^/([!-.0-\\[\\]-~][!-\\[\\]-~]*)?$", "example": "/alerts" })
);

/// Whether an address can only mean this service: browsers take `//` and `/\` for the beginning of another host's name.
fn is_local(path: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    path.starts_with('/') && !path.starts_with("//") && path.bytes().all(fits)
}

/// A parameter that the provider added.
#[derive(Debug, Clone)]
pub struct Parameter(pub String);

impl Deserr<Faults> for Parameter {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        bounded(string(value, location)?, 0, MAX_PARAMETER, location).map(Self)
    }
}

described!(Parameter, json!({ "type": "string", "maxLength": MAX_PARAMETER }));

/// A signed message of the provider.
#[derive(Debug, Clone)]
pub struct SignedMessage(pub SecretString);

impl Deserr<Faults> for SignedMessage {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        Ok(Self(string(value, location)?.into()))
    }
}

described!(SignedMessage, json!({ "type": "string" }));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_service_are_returned_to() {
        for local in ["/", "/alerts", "/servers/1?tab=logs#end", "/a//b", "/%2f%2fevil.test"] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "",
            "alerts",
            "//evil.test",
            "/\\evil.test",
            "\\/evil.test",
            "https://evil.test",
            "/\tevil",
            "/a b",
            "/a\nb",
            "/é",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}

//! The errors of operations, defined once and referenced.

use serde_json::{Map, Value, json};
use signalbox_signing::Reason;

use crate::http::error::ErrorCode;

/// The bodies of errors.
pub fn schemas() -> Map<String, Value> {
    let codes: Vec<&str> = {
        let mut codes: Vec<&str> = ErrorCode::ALL.into_iter().map(ErrorCode::name).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    };
    object(json!({
        "Error": {
            "type": "object",
            "description": "An error.",
            "required": ["detail", "status_code", "code"],
            "properties": {
                "detail": { "type": "string", "description": "A sentence for people." },
                "status_code": { "type": "integer" },
                "code": { "type": "string", "description": "An error code for programs.", "enum": codes },
                "reason": {
                    "type": "string",
                    "description": "Of `agent_refused`: why the signatures of a command did not suffice.",
                    "enum": Reason::ALL.map(Reason::name),
                },
            },
            "example": { "detail": "Server not found", "status_code": 404, "code": "not_found" },
        },
        "ValidationError": {
            "type": "object",
            "description": "All faults of the request.",
            "required": ["detail", "status_code"],
            "properties": {
                "detail": { "type": "array", "items": { "$ref": "#/components/schemas/Fault" } },
                "status_code": { "type": "integer", "enum": [422] },
            },
        },
        "Fault": {
            "type": "object",
            "required": ["loc", "msg", "type"],
            "properties": {
                "loc": {
                    "type": "array",
                    "description": "The location: body, query, path or header, then names and indices.",
                    "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                },
                "msg": { "type": "string" },
                "type": { "type": "string" },
            },
            "example": { "loc": ["body", "name"], "msg": "field required", "type": "value_error.missing" },
        },
    }))
}

/// The responses that refer to those bodies.
pub fn responses() -> Value {
    let answer = |description: &str, schema: &str| {
        json!({
            "description": description,
            "content": { "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } },
        })
    };
    json!({
        "BadRequest": answer("Valid, but cannot be done now", "Error"),
        "Unauthorized": {
            "description": "The token is missing, malformed, expired or revoked",
            "headers": { "WWW-Authenticate": { "schema": { "type": "string", "enum": ["Bearer"] } } },
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
        },
        "Forbidden": answer("Not allowed", "Error"),
        "NotFound": answer("Does not exist, or belongs to another account", "Error"),
        "PayloadTooLarge": answer("The body is larger than 1 MiB", "Error"),
        "Misdirected": answer("The service does not answer to this host name", "Error"),
        "ValidationError": answer("All faults of the request", "ValidationError"),
        "InternalError": answer("A fault of the service; its log has details under the X-Request-Id", "Error"),
        "Busy": answer("The service is busy; try again soon", "Error"),
    })
}

/// The errors that an operation may answer with.
pub fn answers(
    is_open: bool,
    has_input: bool,
    has_body: bool,
    names_a_thing: bool,
    path: &str,
    verb: &str,
) -> Map<String, Value> {
    let is_login =
        path.ends_with("/auth/login") || path.ends_with("/passkeys/login") || path.ends_with("/auth/refresh");
    let makers = [
        "/api-keys",
        "/tokens",
        "/commands",
        "/commands/approvals",
        "/schedules",
        "/alerts/thresholds",
        "/alerts/silences",
        "/grants",
        "/events",
    ];
    let names_in_body = verb == "post" && makers.iter().any(|end| path.ends_with(end));
    let answers = [
        (true, "400", "BadRequest"),
        (!is_open || is_login, "401", "Unauthorized"),
        (!is_open || is_login || path.ends_with("/auth/register"), "403", "Forbidden"),
        (names_a_thing || names_in_body || path.contains("/auth/oidc/"), "404", "NotFound"),
        (has_body, "413", "PayloadTooLarge"),
        (true, "421", "Misdirected"),
        (has_input, "422", "ValidationError"),
        (true, "500", "InternalError"),
        (true, "503", "Busy"),
    ];
    let answers = answers.into_iter().filter(|(applies, ..)| *applies);
    answers.map(|(_, status, name)| (status.to_owned(), reference(name))).collect()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/{name}") })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        let schemas = schemas();
        let codes = schemas["Error"]["properties"]["code"]["enum"].as_array().unwrap();

        for code in ErrorCode::ALL {
            assert!(codes.contains(&json!(code.name())), "{}", code.name());
        }
    }
}

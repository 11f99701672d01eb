//! Completes the document: limits, nullability, bodies of forms, security, errors, names, sockets.

use serde_json::{Map, Value, json};

use super::{errors, raw_paths};
use crate::http::extract::field::DESCRIBED;

/// The beginning of every path.
const BASE: &str = "/api/v1";

pub fn polish(mut document: Value) -> Value {
    show_described(&mut document);
    let components = take_object(&mut document, "components");
    let schemas = components.get("schemas").cloned().unwrap_or_default();
    let mut schemas = schemas.as_object().cloned().unwrap_or_default();
    schemas.values_mut().for_each(mark_nullable);
    schemas.extend(errors::schemas());

    let mut paths = take_object(&mut document, "paths");
    for (path, item) in &mut paths {
        for (verb, operation) in item.as_object_mut().into_iter().flatten() {
            polish_operation(path, verb, operation);
        }
    }
    paths.extend(raw_paths::paths());

    let mut polished = json!({
        "openapi": "3.0.3",
        "info": document.get("info").cloned().unwrap_or_default(),
        "servers": [{ "url": "/" }],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": errors::responses(),
            "securitySchemes": security_schemes(),
        },
    });
    if let Some(info) = polished.get_mut("info").and_then(Value::as_object_mut) {
        info.insert("license".into(), json!({ "name": "Apache-2.0" }));
    }
    polished
}

fn take_object(document: &mut Value, name: &str) -> Map<String, Value> {
    document.get_mut(name).map(Value::take).and_then(|value| value.as_object().cloned()).unwrap_or_default()
}

fn tags() -> Value {
    json!([
        { "name": "Authentication", "description": "Accounts, tokens and sessions" },
        { "name": "Users", "description": "The accounts of the service, and invitations, for administrators" },
        { "name": "Servers", "description": "Managed machines" },
        { "name": "Sharing", "description": "Grants on servers, and teams" },
        { "name": "Metrics", "description": "The latest snapshot and its history" },
        { "name": "Views", "description": "Saved charts, and dashboards of them" },
        { "name": "Docker", "description": "Containers of servers, with Docker or Podman" },
        { "name": "Commands", "description": "Shell commands, on one server or many" },
        { "name": "Schedules", "description": "Commands that recur" },
        { "name": "Updates", "description": "Releases of the agent, rolled out to servers" },
        { "name": "Logs", "description": "Logs of servers" },
        { "name": "Alerts", "description": "Thresholds, the alerts that they raise, and silences" },
        { "name": "API keys", "description": "The keys of agents" },
        { "name": "Tokens", "description": "Tokens for programs" },
        { "name": "Enrolments", "description": "Tokens with which machines make themselves servers" },
        { "name": "Audit", "description": "Who did what, and when" },
        { "name": "Notifications", "description": "Channels for alerts, and the messages sent on them" },
        { "name": "WebSockets", "description": "Agents and live dashboards" },
        { "name": "Service", "description": "Health and metrics of the service itself" },
    ])
}

fn security_schemes() -> Value {
    json!({
        "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
        "login": {
            "type": "oauth2",
            "description": "Signs in with the login form and uses the access token.",
            "flows": { "password": {
                "tokenUrl": format!("{BASE}/auth/login"),
                "refreshUrl": format!("{BASE}/auth/refresh"),
                "scopes": {},
            } },
        },
    })
}

/// Replaces each marked schema by its description. See `described!`.
fn show_described(value: &mut Value) {
    let marked = value.pointer("/enum/0").and_then(Value::as_str).and_then(|text| text.strip_prefix(DESCRIBED));
    if let Some(Value::Object(described)) = marked.and_then(|json| serde_json::from_str(json).ok())
        && let Some(schema) = value.as_object_mut()
    {
        schema.remove("enum");
        schema.extend(described);
    }
    match value {
        Value::Object(map) => map.values_mut().for_each(show_described),
        Value::Array(items) => items.iter_mut().for_each(show_described),
        _ => {}
    }
}

/// An optional field may be null: responses contain it as null, and requests may.
fn mark_nullable(schema: &mut Value) {
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        mark_nullable(property);
        if let Some(property) = property.as_object_mut().filter(|_| !required.contains(name)) {
            property.insert("nullable".into(), true.into());
            if let Some(members) = property.get_mut("enum").and_then(Value::as_array_mut) {
                members.push(Value::Null);
            }
        }
    }
    if let Some(items) = schema.get_mut("items") {
        mark_nullable(items);
    }
}

fn polish_operation(path: &str, verb: &str, operation: &mut Value) {
    let is_open = operation.get("security").is_none();
    let has_body = operation.get("requestBody").is_some();
    let has_input = has_body || operation.get("parameters").is_some();
    let Some(operation) = operation.as_object_mut() else { return };
    if !is_open {
        operation.insert("security".into(), json!([{ "bearer": [] }, { "login": [] }]));
    }
    if path.ends_with("/auth/login") || path.ends_with("/auth/oidc/logout") {
        body_as_form(operation);
    }
    if let Some(Value::String(description)) = operation.get_mut("description") {
        *description = description.replace("\n ", " ");
    }
    headers_as_integers(operation);
    let names_a_thing = path.contains('{');
    let answers = operation.entry("responses").or_insert_with(|| json!({}));
    if let Some(answers) = answers.as_object_mut() {
        answers.extend(errors::answers(is_open, has_input, has_body, names_a_thing, path, verb));
    }
}

/// Every header of our responses is an integer; paperclip loses that.
fn headers_as_integers(operation: &mut Map<String, Value>) {
    let answers = operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    for answer in answers {
        for header in answer.get_mut("headers").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            *header = json!({ "description": header.get("description"), "schema": { "type": "integer" } });
        }
    }
}

/// Documents the sign-in body as a form.
fn body_as_form(operation: &mut Map<String, Value>) {
    let Some(body) = operation.get_mut("requestBody") else { return };
    let schema = body.pointer("/content/application~1json/schema").cloned();
    let form = body.pointer("/content/application~1x-www-form-urlencoded/schema").cloned();
    *body = json!({
        "required": true,
        "content": { "application/x-www-form-urlencoded": { "schema": schema.or(form).unwrap_or_default() } },
    });
}

//! Routes that paperclip does not see: WebSockets, which OpenAPI can describe as the requests that they begin with,
//! and what stands beside the API.

use serde_json::{Map, Value, json};

pub fn paths() -> Map<String, Value> {
    [
        ("/api/v1/agents/ws", agents()),
        ("/api/v1/ws/metrics/{server_id}", metrics()),
        ("/healthz", health("read_liveness", "Whether the process is up", false)),
        ("/readyz", health("read_readiness", "Whether everything that serving needs answers", true)),
        ("/metrics", own_metrics()),
    ]
    .into_iter()
    .map(|(path, operation)| (path.to_owned(), json!({ "get": operation })))
    .collect()
}

fn agents() -> Value {
    json!({
        "tags": ["WebSockets"],
        "operationId": "open_agent_socket",
        "summary": "An agent's connection",
        "description": "The first message must be `auth` with an API key, within 10 s. Text frames are JSON, binary \
                        frames the same messages in MessagePack. Every message is `{\"type\": ..., \"data\": {...}}`.",
        "responses": {
            "101": { "description": "Switching to WebSocket" },
            "400": { "$ref": "#/components/responses/BadRequest" },
            "403": { "$ref": "#/components/responses/Forbidden" },
            "500": { "$ref": "#/components/responses/InternalError" },
        },
    })
}

fn metrics() -> Value {
    json!({
        "tags": ["WebSockets"],
        "operationId": "open_metrics_socket",
        "summary": "Live metrics of a server",
        "description": "The token comes as `Authorization: Bearer`, as the subprotocol pair `bearer, <token>`, or as \
                        `?token=`. Sends `status` and the latest `metrics` at once, then each as it comes. 60 s before \
                        the token expires it sends `token_expiring` and takes `{\"type\": \"auth\", \"token\": ...}`.",
        "security": [{ "bearer": [] }, { "login": [] }],
        "parameters": [
            {
                "name": "server_id", "in": "path", "required": true,
                "schema": { "type": "string", "format": "uuid" },
            },
            {
                "name": "token", "in": "query", "required": false,
                "description": "An access token, where no header can be set.",
                "schema": { "type": "string" },
            },
        ],
        "responses": {
            "101": { "description": "Switching to WebSocket" },
            "400": { "$ref": "#/components/responses/BadRequest" },
            "401": { "$ref": "#/components/responses/Unauthorized" },
            "403": { "$ref": "#/components/responses/Forbidden" },
            "404": { "$ref": "#/components/responses/NotFound" },
            "500": { "$ref": "#/components/responses/InternalError" },
        },
    })
}

fn health(operation_id: &str, summary: &str, may_fail: bool) -> Value {
    let body = |required: &[&str]| {
        json!({ "application/json": { "schema": {
            "type": "object",
            "required": required,
            "properties": {
                "status": { "type": "string" }, "database": { "type": "string" }, "disk": { "type": "string" },
            },
        } } })
    };
    let mut responses = json!({ "200": { "description": "Yes", "content": body(&["status"]) } });
    if let Some(responses) = responses.as_object_mut().filter(|_| may_fail) {
        responses.insert(
            "503".into(),
            json!({
                "description": "No; `part` names what does not answer",
                "content": { "application/json": { "schema": {
                    "type": "object",
                    "required": ["detail", "status_code", "code", "part"],
                    "properties": {
                        "detail": { "type": "string" },
                        "status_code": { "type": "integer" },
                        "code": { "type": "string", "enum": ["not_ready"] },
                        "part": { "type": "string", "enum": ["database", "disk"] },
                    },
                } } },
            }),
        );
    }
    json!({ "tags": ["Service"], "operationId": operation_id, "summary": summary, "responses": responses })
}

fn own_metrics() -> Value {
    json!({
        "tags": ["Service"],
        "operationId": "read_service_metrics",
        "summary": "The service's own metrics",
        "description": "In Prometheus' text format.",
        "responses": { "200": { "description": "OK", "content": { "text/plain": { "schema": { "type": "string" } } } } },
    })
}

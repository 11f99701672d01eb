//! Routes that paperclip does not see: WebSockets, which OpenAPI can describe as the requests that open them, and
//! routes outside of the API.

use serde_json::{Map, Value, json};

use crate::http::extract::container::CONTAINER_ID;

pub fn paths() -> Map<String, Value> {
    [
        ("/api/v1/agents/ws", agents()),
        ("/api/v1/ws/metrics/{server_id}", metrics()),
        ("/api/v1/ws/alerts", alerts()),
        ("/api/v1/ws/fleet", fleet()),
        ("/api/v1/ws/logs/{server_id}", logs()),
        ("/api/v1/ws/commands/{server_id}/{command_id}", command()),
        ("/api/v1/ws/terminal/{server_id}", terminal()),
        ("/install.sh", install_script()),
        ("/install", install_list()),
        ("/install/{name}", install_file()),
        ("/healthz", health("read_liveness", "Whether the process is up", false)),
        ("/readyz", health("read_readiness", "Whether the service can answer requests", true)),
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
            "421": { "$ref": "#/components/responses/Misdirected" },
            "500": { "$ref": "#/components/responses/InternalError" },
        },
    })
}

fn metrics() -> Value {
    let description = "Sends `status` and the latest `metrics` first, then each new one.";
    dashboard("open_metrics_socket", "Live metrics of a server", description, &[])
}

fn alerts() -> Value {
    let description = "Sends each unresolved `alert` of your servers first (the newest 500), then each when it \
                       is raised and when it changes.";
    socket("open_alerts_socket", "Live alerts of all your servers", description, &[])
}

fn fleet() -> Value {
    let description = "Sends `fleet` with all your `servers` first (500 per message), then once a second with those that \
                       have changed, and immediately when an agent connects or disconnects: `server_id`, `status`, `last_seen_at`, \
                       the latest sample's `timestamp`, `cpu_percent`, `memory_percent`, `disk_percent` (the fullest \
                       disk), `load_1`, `network_in` and `network_out` (bytes per second, without the loopback), \
                       `uptime_seconds` and `containers`, each null if unknown. `servers` says that the list \
                       of your servers has changed and should be read again.";
    socket("open_fleet_socket", "Live state of all your servers", description, &[])
}

fn logs() -> Value {
    let description = "Sends a `log` for each line: the last `tail` lines, then each new one. `dropped` says how \
                       many lines are missing, `error` why there are none: the agent is offline (`agent_offline`; the log continues \
                       when the agent reconnects), or it refused or could not read the log, and the socket closes.";
    let parameter = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "required": false, "description": description, "schema": schema });
    let sources = json!({ "type": "string", "enum": ["system", "container", "file"], "default": "system" });
    let tail = json!({ "type": "integer", "minimum": 0, "maximum": 10_000, "default": 100 });
    let parameters = [
        parameter(
            "source",
            "The kind of log: the system's log (the journal, or syslog), a container's, or a file.",
            sources,
        ),
        parameter(
            "container_id",
            "The container, if `source` is `container`.",
            json!({ "type": "string", "maxLength": 128, "pattern": CONTAINER_ID }),
        ),
        parameter(
            "path",
            "The file, if `source` is `file`.",
            json!({ "type": "string", "maxLength": 4_096, "pattern": "^/" }),
        ),
        parameter("tail", "The number of existing lines that are sent first.", tail),
    ];
    let mut socket = dashboard("open_logs_socket", "Live log of a server", description, &parameters);
    if let Some(responses) = socket.get_mut("responses").and_then(Value::as_object_mut) {
        responses.insert("422".into(), json!({ "$ref": "#/components/responses/ValidationError" }));
    }
    socket
}

fn command() -> Value {
    let description = "Sends the past output of the command, then the new output, as `output` with `stream` and `offset`; \
                       `left_out` says how many bytes of a long output were not kept; `result` says how the command ended, and the \
                       socket closes.";
    let command_id = json!({
        "name": "command_id", "in": "path", "required": true,
        "schema": { "type": "string", "format": "uuid" },
    });
    dashboard("open_command_socket", "Live output of a command", description, &[command_id])
}

fn terminal() -> Value {
    let description = "A terminal on the server, if its agent allows it. Accepts `input` with `data`, and `resize` with \
                       `columns` and `rows`; sends `output` with `data`, and at the end `exit` with `exit_code`, or `error`. \
                       With `keep` it waits two minutes for a client whose connection was lost, or that closed with 1001 or \
                       4000: `kept` with `terminal_id`, `secret` and `seconds` comes first, and each `output` has an `offset`, \
                       the bytes of output before it. With `resume` the client first sends `resume` with `terminal_id`, \
                       `secret` and the `offset` up to which it has read, within 10 s. It gets `kept`, `left_out` with `bytes` \
                       if some is not there any more, what it missed, and then what comes. Another client of the terminal \
                       gets the error `terminal_resumed`.";
    let size = |name: &str, usual: u16| {
        json!({
            "name": name, "in": "query", "required": false,
            "schema": { "type": "integer", "minimum": 1, "maximum": 1_000, "default": usual },
        })
    };
    let flag = |name: &str, description: &str| {
        json!({
            "name": name, "in": "query", "required": false, "description": description,
            "schema": { "type": "boolean", "default": false },
        })
    };
    let parameters = [
        size("columns", 80),
        size("rows", 24),
        flag("keep", "The terminal waits for a client that lost its connection."),
        flag("resume", "The first message names the terminal to resume."),
    ];
    let mut socket = dashboard("open_terminal", "A terminal on a server", description, &parameters);
    if let Some(responses) = socket.get_mut("responses").and_then(Value::as_object_mut) {
        responses.insert("422".into(), json!({ "$ref": "#/components/responses/ValidationError" }));
    }
    socket
}

/// A socket that shows a user something about a server.
fn dashboard(operation_id: &str, summary: &str, description: &str, parameters: &[Value]) -> Value {
    let server_id = json!({
        "name": "server_id", "in": "path", "required": true,
        "schema": { "type": "string", "format": "uuid" },
    });
    let mut socket = socket(operation_id, summary, description, &[&[server_id], parameters].concat());
    if let Some(responses) = socket.get_mut("responses").and_then(Value::as_object_mut) {
        responses.insert("404".into(), json!({ "$ref": "#/components/responses/NotFound" }));
    }
    socket
}

/// A socket that shows a user something.
fn socket(operation_id: &str, summary: &str, description: &str, parameters: &[Value]) -> Value {
    let token = json!({
        "name": "token", "in": "query", "required": false,
        "description": "An access token, for clients that cannot set headers.",
        "schema": { "type": "string" },
    });
    let all = [parameters, &[token]].concat();
    json!({
        "tags": ["WebSockets"],
        "operationId": operation_id,
        "summary": summary,
        "description": format!(
            "Send the token as `Authorization: Bearer`, as the subprotocol pair `bearer, <token>`, or as `?token=`. \
             60 s before the token expires the socket sends `token_expiring`, and accepts `{{\"type\": \"auth\", \"token\": ...}}`. \
             `{{\"type\": \"ping\"}}` is answered with `pong`: on `/ws/alerts` and `/ws/metrics` after what they send at their beginning. \
             {description}"
        ),
        "security": [{ "bearer": [] }, { "login": [] }],
        "parameters": all,
        "responses": {
            "101": { "description": "Switching to WebSocket" },
            "400": { "$ref": "#/components/responses/BadRequest" },
            "401": { "$ref": "#/components/responses/Unauthorized" },
            "403": { "$ref": "#/components/responses/Forbidden" },
            "421": { "$ref": "#/components/responses/Misdirected" },
            "500": { "$ref": "#/components/responses/InternalError" },
        },
    })
}

fn install_script() -> Value {
    let script = json!({ "text/x-shellscript": { "schema": { "type": "string" } } });
    json!({
        "tags": ["Service"],
        "operationId": "read_install_script",
        "summary": "The script that installs an agent from this service",
        "description": "`curl -fsSL .../install.sh | sudo sh -s -- --key sbk_...`; `--help` lists its options. The address in \
                        it is `--public-url`, or the one that the request used (400 if it has no usable host name).",
        "responses": {
            "200": { "description": "OK", "content": script },
            "400": { "$ref": "#/components/responses/BadRequest" },
            "500": { "$ref": "#/components/responses/InternalError" },
        },
    })
}

fn install_list() -> Value {
    let agent = json!({
        "type": "object",
        "required": ["os", "arch", "bytes", "sha256"],
        "properties": {
            "os": { "type": "string", "description": "`linux`" },
            "arch": { "type": "string", "description": "The machine as in `uname -m`: `x86_64`, `aarch64`, `armv7`." },
            "bytes": { "type": "integer", "format": "int64", "minimum": 0 },
            "sha256": { "type": "string", "pattern": "^[0-9a-f]{64}$" },
        },
    });
    let list = json!({ "application/json": { "schema": {
        "type": "object",
        "required": ["agents", "script"],
        "properties": {
            "agents": { "type": "array", "items": agent },
            "script": { "type": "string", "description": "The address of the script that installs them." },
        },
    } } });
    json!({
        "tags": ["Service"],
        "operationId": "list_agent_programs",
        "summary": "The agents that can be installed from this service",
        "responses": {
            "200": { "description": "OK", "content": list },
            "400": { "$ref": "#/components/responses/BadRequest" },
            "500": { "$ref": "#/components/responses/InternalError" },
        },
    })
}

fn install_file() -> Value {
    let name = json!({
        "name": "name", "in": "path", "required": true,
        "description": "`signalbox-agent-<os>-<arch>`, or the same with `.sha256`.",
        "schema": { "type": "string", "pattern": "^signalbox-agent-[a-z0-9]{1,16}-[a-z0-9_]{1,16}(\\.sha256)?$" },
    });
    let content = json!({
        "application/octet-stream": { "schema": { "type": "string", "format": "binary" } },
        "text/plain": { "schema": { "type": "string" } },
    });
    json!({
        "tags": ["Service"],
        "operationId": "download_agent_program",
        "summary": "An agent's program, or its checksum",
        "description": "The `ETag` of the program is its SHA-256; the checksum is a line for `sha256sum --check`.",
        "parameters": [name],
        "responses": {
            "200": { "description": "OK", "content": content },
            "304": { "description": "The client already has this program (`If-None-Match`)" },
            "404": { "$ref": "#/components/responses/NotFound" },
            "500": { "$ref": "#/components/responses/InternalError" },
            "503": { "$ref": "#/components/responses/Busy" },
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
                "bus": { "type": "string", "enum": ["none", "ok"] },
            },
        } } })
    };
    let mut responses = json!({ "200": { "description": "Yes", "content": body(&["status"]) } });
    if let Some(responses) = responses.as_object_mut().filter(|_| may_fail) {
        responses.insert(
            "503".into(),
            json!({
                "description": "No; `part` names the part that is not available",
                "content": { "application/json": { "schema": {
                    "type": "object",
                    "required": ["detail", "status_code", "code", "part"],
                    "properties": {
                        "detail": { "type": "string" },
                        "status_code": { "type": "integer" },
                        "code": { "type": "string", "enum": ["not_ready"] },
                        "part": { "type": "string", "enum": ["database", "disk", "draining", "bus"] },
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::paths;
    use crate::http::path::API;
    use crate::http::sockets;

    #[test]
    fn every_socket_is_in_the_document_and_no_other() {
        let described = paths().into_iter().map(|(path, _)| path).filter(|path| path.starts_with(API));

        let mounted = sockets::routes().map(|(path, _)| format!("{API}{path}"));

        assert_eq!(described.collect::<BTreeSet<_>>(), BTreeSet::from(mounted));
    }
}

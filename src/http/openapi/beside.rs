//! Routes that paperclip does not see: WebSockets, which OpenAPI can describe as the requests that they begin with,
//! and what stands beside the API.

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
    let description = "Sends `status` and the latest `metrics` at once, then each as it comes.";
    dashboard("open_metrics_socket", "Live metrics of a server", description, &[])
}

fn alerts() -> Value {
    let description = "Sends each `alert` of your servers that is not resolved at once (the newest 500), then each as it \
                       is raised and changes.";
    socket("open_alerts_socket", "Live alerts of all your servers", description, &[])
}

fn fleet() -> Value {
    let description = "Sends `fleet` with all your `servers` at once (500 a message), then once a second with those that \
                       are different, and at once when an agent comes or goes: `server_id`, `status`, `last_seen_at`, \
                       the latest sample's `timestamp`, `cpu_percent`, `memory_percent`, `disk_percent` (the fullest \
                       disk), `load_1`, `network_in` and `network_out` (bytes a second, without the loopback), \
                       `uptime_seconds` and `containers`, each null where it is not known. `servers` says that the list \
                       of your servers has changed: read it again.";
    socket("open_fleet_socket", "All your servers live", description, &[])
}

fn logs() -> Value {
    let description = "Sends a `log` for each line: the last `tail`, then each as it is written. `dropped` says how \
                       many lines are missing, `error` why none come: the agent is offline (`agent_offline`; it goes on \
                       when the agent is back), or it refused or could not read the log, and the socket closes.";
    let parameter = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "required": false, "description": description, "schema": schema });
    let sources = json!({ "type": "string", "enum": ["system", "container", "file"], "default": "system" });
    let tail = json!({ "type": "integer", "minimum": 0, "maximum": 10_000, "default": 100 });
    let parameters = [
        parameter("source", "The system's log (the journal, or syslog), a container's, or a file.", sources),
        parameter(
            "container_id",
            "Which container.",
            json!({ "type": "string", "maxLength": 128, "pattern": CONTAINER_ID }),
        ),
        parameter("path", "Which file.", json!({ "type": "string", "maxLength": 4_096, "pattern": "^/" })),
        parameter("tail", "How many of the lines that are there already come first.", tail),
    ];
    let mut socket = dashboard("open_logs_socket", "A log of a server as it is written", description, &parameters);
    if let Some(responses) = socket.get_mut("responses").and_then(Value::as_object_mut) {
        responses.insert("422".into(), json!({ "$ref": "#/components/responses/ValidationError" }));
    }
    socket
}

fn command() -> Value {
    let description = "Sends what the command wrote so far, then what it writes, as `output` with its `stream` and `offset`; \
                       `left_out` says how many bytes of a long output are not kept; `result` says how it ended, and the \
                       socket closes.";
    let command_id = json!({
        "name": "command_id", "in": "path", "required": true,
        "schema": { "type": "string", "format": "uuid" },
    });
    dashboard("open_command_socket", "A command as it runs", description, &[command_id])
}

fn terminal() -> Value {
    let description = "A terminal on the server, where its agent allows it. Takes `input` with `data`, and `resize` with \
                       `columns` and `rows`; sends `output` with `data`, and at the end `exit` with `exit_code`, or `error`.";
    let size = |name: &str, usual: u16| {
        json!({
            "name": name, "in": "query", "required": false,
            "schema": { "type": "integer", "minimum": 1, "maximum": 1_000, "default": usual },
        })
    };
    let mut socket =
        dashboard("open_terminal", "A terminal on a server", description, &[size("columns", 80), size("rows", 24)]);
    if let Some(responses) = socket.get_mut("responses").and_then(Value::as_object_mut) {
        responses.insert("422".into(), json!({ "$ref": "#/components/responses/ValidationError" }));
    }
    socket
}

/// A socket that shows something of a server to a user.
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

/// A socket that shows something to a user.
fn socket(operation_id: &str, summary: &str, description: &str, parameters: &[Value]) -> Value {
    let token = json!({
        "name": "token", "in": "query", "required": false,
        "description": "An access token, where no header can be set.",
        "schema": { "type": "string" },
    });
    let all = [parameters, &[token]].concat();
    json!({
        "tags": ["WebSockets"],
        "operationId": operation_id,
        "summary": summary,
        "description": format!(
            "The token comes as `Authorization: Bearer`, as the subprotocol pair `bearer, <token>`, or as `?token=`. \
             60 s before the token expires it sends `token_expiring` and takes `{{\"type\": \"auth\", \"token\": ...}}`. \
             {description}"
        ),
        "security": [{ "bearer": [] }, { "login": [] }],
        "parameters": all,
        "responses": {
            "101": { "description": "Switching to WebSocket" },
            "400": { "$ref": "#/components/responses/BadRequest" },
            "401": { "$ref": "#/components/responses/Unauthorized" },
            "403": { "$ref": "#/components/responses/Forbidden" },
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
                        it is `--public-url`, or the one that the request was sent to (400 where that is none).",
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
            "arch": { "type": "string", "description": "In the words of `uname -m`: `x86_64`, `aarch64`, `armv7`." },
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
        "description": "`signalbox-agent-<os>-<arch>`, or the same and `.sha256`.",
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
        "description": "The program has its SHA-256 as `ETag`; the checksum is a line that `sha256sum --check` reads.",
        "parameters": [name],
        "responses": {
            "200": { "description": "OK", "content": content },
            "304": { "description": "The program is the one that `If-None-Match` names" },
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
                "description": "No; `part` names what does not answer",
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

//! Configurations of the documents, read by what reads them elsewhere or compared with the files that the tests try.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use signalbox_agent::policy::Policy;
use signalbox_protocol::agent::{Release, TerminalSize};
use signalbox_protocol::frontend::FeedMessage;
use tempfile::TempDir;
use uuid::Uuid;

use super::blocks::{Block, read, root};
use super::calls::{answer_of, check_fields};
use super::commands;

/// What a proxy's example says and the file that scripts/test-proxies tries does not: one instance instead of two.
const OF_ONE_INSTANCE: [&str; 3] =
    ["listen 443 ssl", "proxy_pass http://127.0.0.1:8000", "reverse_proxy 127.0.0.1:8000"];

/// Keys that were tried, by their section.
const KEYS: [(&str, &[&str]); 4] = [
    ("databases", &["signalbox"]),
    (
        "pgbouncer",
        &[
            "auth_file",
            "auth_type",
            "default_pool_size",
            "listen_addr",
            "listen_port",
            "max_client_conn",
            "pool_mode",
            "server_idle_timeout",
        ],
    ),
    ("Service", &["CPUQuota", "Environment", "EnvironmentFile", "LimitNOFILE", "LoadCredential", "MemoryMax"]),
    ("Unit", &["After", "Requires", "Wants"]),
];

/// A policy file.
pub fn toml(block: &Block) -> Vec<String> {
    Policy::parse(&block.text).err().into_iter().collect()
}

/// Lines of JSON, or the file in which clients of the Model Context Protocol have their programs. Of the lines each is a
/// body of the API's errors, a message of a terminal, or a release of the agent.
pub fn json(block: &Block) -> Vec<String> {
    if block.path == "docs/reference/protocol.md" {
        // protocol/tests/document.rs decodes each of these messages.
        return Vec::new();
    }
    if let Ok(Value::Object(file)) = serde_json::from_str(&block.text)
        && let Some(Value::Object(programs)) = file.get("mcpServers")
    {
        return programs.values().filter_map(program_of_json).collect();
    }
    let document = signalbox::http::openapi::document();
    block
        .text
        .lines()
        .filter_map(|line| of_json(&document, line).err().map(|fault| format!("{line}: {fault}")))
        .collect()
}

/// What is wrong with a command line that a file has in parts.
fn program_of_json(program: &Value) -> Option<String> {
    let Ok(arguments) = serde_json::from_value::<Vec<String>>(program["args"].clone()) else {
        return Some(format!("{program}: args is no list of texts"));
    };
    commands::fault_of_program(program["command"].as_str().unwrap_or_default(), &arguments)
}

/// What a client says of the terminal that it resumes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    #[serde(rename = "terminal_id")]
    _terminal_id: Uuid,
    #[serde(rename = "secret")]
    _secret: String,
    #[serde(rename = "offset")]
    _offset: u64,
}

fn of_json(document: &Value, line: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let fields: Vec<String> = value.as_object().ok_or("this is no object")?.keys().cloned().collect();
    let schema = |name: &str| check_fields(document, &document["components"]["schemas"][name], &fields);
    match value["type"].as_str() {
        Some("input") if value["data"]["data"].is_string() => Ok(()),
        Some("resize") => {
            serde_json::from_value(value["data"].clone()).map(|_: TerminalSize| ()).map_err(|error| error.to_string())
        }
        Some("resume") => {
            serde_json::from_value(value["data"].clone()).map(|_: Resume| ()).map_err(|error| error.to_string())
        }
        Some("kept" | "output") => {
            serde_json::from_value(value).map(|_: FeedMessage| ()).map_err(|error| error.to_string())
        }
        None if value["programs"].is_object() => {
            serde_json::from_value(value).map(|_: Release| ()).map_err(|error| error.to_string())
        }
        None if value["detail"].is_array() => schema("ValidationError"),
        None if value["detail"].is_string() => schema("Error"),
        _ => Err("say in tests/it/documents/formats.rs of what this is an example, and read it as that".to_owned()),
    }
}

/// Files of packaging of which documents show a part, by the line that begins it.
const SHOWN: [(&str, &str); 3] = [
    ("#cloud-config", "packaging/cloud-init/user-data.yaml"),
    ("- name: Make the machines", "packaging/ansible/playbook.yaml"),
    ("", "packaging/compose/compose.yaml"),
];

/// A configuration of Prometheus or Home Assistant, or a part of a file that is tested elsewhere.
pub fn yaml(block: &Block) -> Vec<String> {
    if block.text.starts_with("rest:") {
        return home_assistant(&block.text);
    }
    if block.text.starts_with("scrape_configs:") {
        return promtool(&block.text).err().into_iter().collect();
    }
    let shown = SHOWN.iter().find(|(beginning, _)| block.text.starts_with(beginning));
    let (_, path) = shown.expect("every text begins with nothing");
    let tried = read(path);
    let lines: Vec<&str> = tried.lines().map(str::trim).collect();
    let unknown = block.text.lines().map(str::trim).filter(|line| !lines.contains(line));
    unknown.map(|line| format!("{path}, which the tests try, has no line `{line}`")).collect()
}

/// Sensors of Home Assistant: whether the service has the addresses and the fields that they read.
fn home_assistant(configuration: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut schema = Value::Null;
    for line in configuration.lines() {
        if let Some((_, address)) = line.split_once("resource: ") {
            match answer_of(address.trim()) {
                Ok(found) => schema = found,
                Err(fault) => faults.push(fault),
            }
        }
        for read in line.split("value_json.").skip(1) {
            let field: String = read.chars().take_while(|next| next.is_alphanumeric() || *next == '_').collect();
            if schema["properties"][&field].is_null() {
                faults.push(format!("`{}` reads `{field}`, which the answer does not have", line.trim()));
            }
        }
    }
    faults
}

/// What Prometheus itself says of its configuration.
fn promtool(configuration: &str) -> Result<(), String> {
    let directory = TempDir::new().unwrap();
    let (file, token) = (directory.path().join("prometheus.yml"), directory.path().join("token"));
    std::fs::write(&token, "token").unwrap();
    // It checks that the file of the token exists.
    let lines = configuration.lines().map(|line| match line.split_once("credentials_file: ") {
        Some((indent, _)) => format!("{indent}credentials_file: {}\n", token.display()),
        None => format!("{line}\n"),
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let promtool = root().join("target/test-tools/bin/promtool");
    let output = Command::new(promtool).args(["check", "config"]).arg(&file).output();
    let output = output.expect("promtool, which scripts/test-setup installs");
    let said = [output.stdout, output.stderr].concat();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned()) }
}

/// A proxy's configuration: every directive is one of the file that scripts/test-proxies tries.
pub fn proxy(block: &Block, tried: &str) -> Vec<String> {
    let known = directives(&read(tried));
    let unknown = directives(&block.text).into_iter();
    let unknown = unknown.filter(|line| !known.contains(line) && !OF_ONE_INSTANCE.contains(&line.as_str()));
    unknown
        .map(|line| format!("{tried}, which the tests try, has no `{line}` (or name it in OF_ONE_INSTANCE)"))
        .collect()
}

/// What stands between semicolons, braces and ends of lines, without comments and with single blanks.
fn directives(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split_once('#').map_or(line, |(before, _)| before));
    let parts = lines.flat_map(|line| line.split([';', '{', '}']));
    let words = parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|directive| !directive.is_empty()).collect()
}

/// Sections with keys: a unit of systemd, the configuration of PgBouncer.
pub fn ini(block: &Block) -> Vec<String> {
    let mut faults = Vec::new();
    let mut section = "";
    for line in block.text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '#'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            continue;
        }
        let key = line.split_once('=').map(|(key, _)| key.trim());
        let keys = KEYS.iter().find(|(known, _)| *known == section).map(|(_, keys)| *keys).unwrap_or_default();
        if !key.is_some_and(|key| keys.contains(&key)) {
            faults.push(format!(
                "`{line}` in [{section}]: try it, and add its key to KEYS in tests/it/documents/formats.rs"
            ));
        }
    }
    faults
}

/// Variables for a program.
pub fn env(block: &Block) -> Vec<String> {
    commands::environment_file(&block.text)
}

/// A line of /etc/cron.d: five fields of time, a user, a command.
pub fn crontab(block: &Block) -> Vec<String> {
    let lines = block.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(cron_line).collect()
}

fn cron_line(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_time = |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit() || b"*/,-".contains(&byte));
    if words.len() < 7 || !words.iter().take(5).all(is_time) {
        return vec![format!("`{line}` has not five fields of time, a user and a command")];
    }
    let command = words.get(6..).unwrap_or_default().join(" ");
    super::shell::commands_of(&command).iter().flat_map(commands::faults_of).collect()
}

/// A program in Python: whether it can be read.
pub fn python(block: &Block) -> Vec<String> {
    piped("python3", &["-c", "import ast, sys; ast.parse(sys.stdin.read())"], &block.text).err().into_iter().collect()
}

/// What a shell says of the grammar of a script.
pub fn grammar(shell: &str, script: &str) -> Option<String> {
    piped(shell, &["-n"], script).err()
}

/// Runs a program that only reads its input; what it complains about.
fn piped(program: &str, arguments: &[&str], input: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    // One that has seen enough hangs up; its exit code says why.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

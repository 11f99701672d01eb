//! Pages that a newcomer follows first, run against a real service as they stand: every command of theirs, in order. What stands
//! for something of the reader's is replaced by an explicit table, and whatever is not in it runs unchanged.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use signalbox::config::MIN_PASSWORD_ITERATIONS;

use super::blocks::shell_blocks;
use crate::real_agent::agent_program;
use crate::support::command_line::{Launched, run};
use crate::support::{TestService, registration, text_of};

/// Keeps each answer for `field`, and ends the script at the first that is an error.
const PRELUDE: &str = r#"set -euo pipefail
curl() {
  command curl --fail-with-body --max-time 30 "$@" >answer || { cat answer; exit 22; }
  cat answer
  echo
}
field() {
  python3 -c 'import json, sys; print(json.load(open("answer"))[sys.argv[1]])' "$1"
}
"#;

/// Runs the agent as the page does until the service sees it.
const RUN_AGENT: &str = r#"run_agent() {
  timeout 50 "$AGENT" "$@" --state-dir "$PWD/state" 2>agent.log &
  local agent=$!
  until command curl -sf --max-time 30 "$BASE/servers/$SERVER" -H "Authorization: Bearer $TOKEN" >server &&
    grep -q '"status": *"online"' server; do
    kill -0 "$agent" || { cat agent.log; exit 1; }
    sleep 0.1
  done
  kill "$agent"
  wait "$agent" || true
  echo 'the agent was online'
}
"#;

/// What the page of the API leaves to the reader.
const OF_READERS: [(&str, &str); 6] = [
    ("BASE=http://127.0.0.1:8000/api/v1", "BASE=$SERVICE/api/v1"),
    ("TOKEN=...", "TOKEN=$(field access_token) REFRESH=$(field refresh_token)"),
    ("SERVER=...", "SERVER=$(field id)"),
    ("cat >agent.key", "field key >agent.key"),
    ("target/release/signalbox-agent --url http://127.0.0.1:8000", "run_agent --url $SERVICE"),
    (r#"'{"refresh_token": "..."}'"#, r#""{\"refresh_token\": \"$REFRESH\"}""#),
];

/// The blocks of a page as one script.
fn script_of(page: &str, replaced: &[(&str, &str)]) -> String {
    let mut script = shell_blocks(page).concat();
    for (text, by) in replaced {
        assert!(
            script.contains(text),
            "{page} has no `{text}` any more: change the table in tests/it/documents/running.rs"
        );
        script = script.replace(text, by);
    }
    assert!(
        !script.contains("=..."),
        "{page}: say in tests/it/documents/running.rs what the reader puts here:\n{script}"
    );
    script
}

/// A shell with nothing of this process's environment that could matter.
pub(super) fn shell(script: &str, service: &str) -> Command {
    let mut command = Command::new("bash");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("no_proxy", "*");
    command.env("SERVICE", service).env("AGENT", agent_program()).args(["-c", script]);
    command
}

#[actix_web::test]
async fn the_first_calls_of_the_api_work_in_order() {
    let service = TestService::start().await;
    let page = script_of("docs/reference/api.md", &OF_READERS);
    let script = format!("{PRELUDE}{RUN_AGENT}{page}");

    let outcome = run(shell(&script, &format!("http://{}", service.address))).await;

    let printed = outcome.printed();
    assert!(printed.contains("the agent was online"), "{outcome:?}");
    assert!(printed.to_lowercase().contains("x-total-count: 1"), "{outcome:?}");
}

#[actix_web::test]
async fn the_calls_of_alerts_and_metrics_work() {
    let service = TestService::start().await;
    let account = service.register("ada").await;
    let server_id = service.server(&account, "web-1").await;
    let alerts = script_of(
        "docs/guides/alerts.md",
        &[
            ("CHANNEL=...", "CHANNEL=$(field id)"),
            // It would send a message to a service of somebody else.
            (
                "curl -s -X POST $BASE/notifications/channels/$CHANNEL/test",
                "curl -s $BASE/notifications/channels/$CHANNEL",
            ),
        ],
    );
    let metrics = script_of("docs/guides/metrics.md", &[]);
    let script = format!("{PRELUDE}{alerts}{metrics}");

    let mut command = shell(&script, "");
    command.env("BASE", format!("http://{}/api/v1", service.address));
    command.env("TOKEN", &account.token).env("SERVER", server_id.to_string());
    let outcome = run(command).await;

    outcome.printed();
    let thresholds = service.client.get("/alerts/thresholds").bearer(&account.token).expect(200).await;
    assert_eq!(thresholds.as_array().map(Vec::len), Some(2), "{outcome:?}");
}

#[actix_web::test]
async fn the_first_server_comes_as_its_page_says() {
    let blocks = shell_blocks("docs/start.md");
    let line_with = |text: &str| {
        let lines = blocks.iter().flat_map(|block| block.lines());
        lines.filter(|line| line.contains(text)).collect::<Vec<_>>().concat()
    };
    let serve = line_with("signalbox serve ").replace("target/release/signalbox", env!("CARGO_BIN_EXE_signalbox"));
    let install = line_with("/install.sh");

    let mut command = shell(&format!("exec {serve} --listen 127.0.0.1:0"), "");
    command.env("SIGNALBOX_PASSWORD_ITERATIONS", MIN_PASSWORD_ITERATIONS.to_string());
    let mut service = Launched::start(command);
    let address = service.address().await;
    let client = service.client().await;
    let account = client.post("/auth/register").json(registration("ada")).expect(201).await;
    let token = text_of(&account["access_token"]);
    let server =
        client.post("/servers").bearer(&token).json(json!({"name": "web-1", "host": "192.0.2.10"})).expect(201).await;
    let body = json!({"server_id": server["id"], "name": "web-1"});
    let key = text_of(&client.post("/api-keys").bearer(&token).json(body).expect(201).await["key"]);
    let line = install.replace("https://signalbox.example.com", &format!("http://{address}")).replace("sbk_...", &key);
    // Below a directory of its own it needs no rights, makes no user and starts nothing.
    let root = service.directory().join("root");
    let installer = line.replace("sudo sh", "sh");
    assert!(installer != line && installer.contains(&key), "{install}");
    let mut command = shell(&format!("set -euo pipefail\n{installer}"), "");
    command.env("SIGNALBOX_ROOT", &root);
    run(command).await.printed();

    let data = service.directory().join("data");
    assert!(
        is_file(&root, "usr/local/bin/signalbox-agent") && is_file(&root, "etc/signalbox-agent/policy.toml"),
        "{install}"
    );
    assert!(data.is_dir(), "{serve}");
}

fn is_file(root: &Path, path: &str) -> bool {
    root.join(path).is_file()
}

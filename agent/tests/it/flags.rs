//! Flags, variables and files, and the program's messages about wrong ones.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use serde_json::json;
use signalbox_protocol::agent::Response;
use tokio::process::Command;
use tokio::time::timeout;
use uuid::Uuid;

use crate::agent::{KEY, PATIENCE, state_dir};
use crate::program::program;
use crate::requests::request;
use crate::service::Service;

/// Writes a file that nobody else can read.
fn write_private(path: &Path, text: &str) {
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Exit code, standard output, standard error.
async fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn help_explains_every_flag_and_never_shows_the_key() {
    let (code, help, _) = run(program(&["--help"]).env("SIGNALBOX_AGENT_KEY", KEY)).await;

    assert_eq!(code, Some(0));
    assert!(!help.contains(KEY));
    let flags = [
        "url",
        "key",
        "key-file",
        "interval",
        "live",
        "state-dir",
        "ca-file",
        "policy",
        "processes",
        "commands",
        "docker",
        "docker-host",
        "logs",
        "log-path",
        "terminal",
        "record",
        "log",
        "log-format",
    ];
    for flag in flags {
        let variable = format!("SIGNALBOX_AGENT_{}", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&format!("--{flag} <")) && help.contains(&variable), "{flag}");
    }
}

#[tokio::test]
async fn a_bad_value_ends_the_program_with_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (empty, policy, missing) = (path("empty"), path("policy.toml"), path("missing"));
    let (exposed, unquoted) = (path("exposed"), path("unquoted.toml"));
    write_private(Path::new(&empty), "\n");
    write_private(Path::new(&exposed), KEY);
    std::fs::set_permissions(&exposed, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&policy, "comands = \"on\"\n").unwrap();
    std::fs::write(&unquoted, "docker = \"off\"\ncommands = true\n").unwrap();
    let state = path("state");
    let base = ["--url", "http://localhost:1", "--state-dir", &state];
    let cases: Vec<(Vec<&str>, String)> = vec![
        (vec!["--key", "k", "--interval", "0.1"], "--interval: 0.1 is not between 0.5 and 3600 seconds".into()),
        (
            vec!["--key", "k", "--interval", "x"],
            "invalid value 'x' for '--interval <SECONDS>': a number of seconds from 0.5 to 3600 is needed".into(),
        ),
        (
            vec!["--key", "k", "--commands", "maybe"],
            "invalid value 'maybe' for '--commands <off|on>' [possible values: off, on]".into(),
        ),
        (vec!["--key", "k", "--colour"], "unexpected argument '--colour' found".into()),
        (vec![], "no key is given: use --key-file or --key".into()),
        (vec!["--key", ""], "the agent's key is empty".into()),
        (vec!["--key-file", &empty], "the agent's key is empty".into()),
        (
            vec!["--key-file", &exposed],
            format!(
                "--key-file {exposed}: other users can read or change it (mode 0644): `chmod 600` it, and renew it if \
                 they may have"
            ),
        ),
        (vec!["--key", "k", "--interval", "-5"], "--interval: -5 is not between 0.5 and 3600 seconds".into()),
        (
            vec!["--key", "k", "--policy", &unquoted],
            format!(
                "policy file {unquoted}: line 2: invalid type: boolean `true`, expected one of \"off\", \"signed\", \"on\", or a list of people"
            ),
        ),
        (vec!["--key-file", &missing], format!("--key-file {missing}: No such file or directory (os error 2)")),
        (
            vec!["--key", "k", "--key-file", &empty],
            "the argument '--key <KEY>' cannot be used with '--key-file <FILE>'".into(),
        ),
        (
            vec!["--key", "k", "--ca-file", &missing],
            format!("--ca-file {missing}: no such file or directory (os error 2)"),
        ),
        (vec!["--key", "k", "--log-path", "app.log"], "--log-path: `app.log` is not an absolute path".into()),
        (
            vec!["--key", "k", "--policy", &missing],
            format!("policy file {missing}: No such file or directory (os error 2)"),
        ),
        (
            vec!["--key", "k", "--policy", &policy],
            format!(
                "policy file {policy}: line 1: unknown field `comands`, expected one of `processes`, `commands`, \
                 `docker`, `docker_host`, `logs`, `log_paths`, `terminal`, `record`, `updates`, `release_signers`, `name`, `signers`, `approvals`, `allow`"
            ),
        ),
        (
            vec!["--key", "k", "--policy", &policy, "--logs", "on"],
            "the argument '--policy <FILE>' cannot be used with '--logs <off|on>'".into(),
        ),
        (
            vec!["--key", "k", "--log", "loud"],
            "invalid value 'loud' for '--log <LEVEL>' [possible values: error, warn, info, debug, trace]".into(),
        ),
    ];

    for (arguments, expected) in cases {
        let (code, out, err) = run(program(&base).args(&arguments)).await;

        assert_eq!((code, out.as_str(), err), (Some(2), "", format!("signalbox-agent: {expected}\n")), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_variable_that_sets_nothing_is_named_with_the_nearest() {
    let cases = [("SIGNALBOX_AGENT_COMANDS", "COMMANDS"), ("SIGNALBOX_AGENT_STATEDIR", "STATE_DIR")];

    for (name, nearest) in cases {
        let (code, out, err) = run(program(&["--url", "http://localhost:1", "--key", "k"]).env(name, "on")).await;

        let expected = format!(
            "signalbox-agent: the environment variable {name} sets nothing; the nearest that does is \
             SIGNALBOX_AGENT_{nearest}\n"
        );
        assert_eq!((code, out.as_str(), err), (Some(2), "", expected));
    }
}

#[tokio::test]
async fn a_bad_address_is_named() {
    let (code, _, err) = run(&mut program(&["--url", "box:8000", "--key", "k"])).await;

    let expected = "signalbox-agent: invalid value 'box:8000' for '--url <URL>': \
                    `box:8000` must start with http://, https://, ws:// or wss://\n";
    assert_eq!((code, err.as_str()), (Some(2), expected));
}

#[tokio::test]
async fn environment_variables_equal_flags() {
    let (service, state) = (Service::start().await, state_dir());
    let key_file = state.path().join("key");
    write_private(&key_file, &format!("{KEY}\n"));

    let child = program(&[])
        .env("SIGNALBOX_AGENT_URL", service.url())
        // An empty one counts as not set.
        .env("SIGNALBOX_AGENT_KEY", "")
        .env("SIGNALBOX_AGENT_DOCKER", "")
        .env("SIGNALBOX_AGENT_LOG_PATH", "")
        .env("SIGNALBOX_AGENT_KEY_FILE", key_file)
        .env("STATE_DIRECTORY", state.path())
        .spawn()
        .unwrap();
    let auth = service.accept().await.auth().await;

    assert_eq!(auth.api_key, KEY);
    assert_eq!(auth.agent.capabilities, ["metrics", "processes", "docker"]);
    assert!(state.path().join("lock").exists(), "systemd's directory is used");
    drop(child);
}

#[tokio::test]
async fn colons_separate_log_paths_in_the_variable_and_belong_to_the_path_in_the_flag() {
    let service = Service::start().await;
    let cases = [
        (
            vec!["--log-path", "/srv/app:1.log", "--log-path", "/srv/app:2.log"],
            "",
            ["/srv/app:1.log", "/srv/app:2.log"],
        ),
        (vec![], "/srv/web.log:/srv/mail.log", ["/srv/web.log", "/srv/mail.log"]),
    ];

    for (flags, variable, log_paths) in cases {
        let state = state_dir();
        let child = program(&["--url", &service.url(), "--key", KEY, "--docker", "off", "--logs", "on"])
            .args(flags)
            .arg("--state-dir")
            .arg(state.path())
            .env("SIGNALBOX_AGENT_LOG_PATH", variable)
            .spawn()
            .unwrap();
        let mut peer = service.accept_authenticated().await;
        peer.send(&request(1, "agent.policy")).await;
        let policy = peer.response().await;

        let expected = json!({
            "processes": "on", "commands": "off", "docker": "off", "docker_host": null, "logs": "on",
            "log_paths": log_paths, "terminal": "off", "record": "off",
        });
        assert_eq!(policy, Response::new(Uuid::from_u128(1), Ok(expected)));
        drop(child);
    }
}

//! The role for Ansible on a machine where systemd runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{KEY_FILE, Machine, collect};
use crate::support::command_line::{Outcome, run};

/// Says that the agent is enabled and runs, and records its calls.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$1" >>"$CALLS"
case $1 in
  show) printf 'LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n' ;;
  is-enabled) echo enabled ;;
esac
"#;

fn packaging() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging"))
}

/// Plays the role on a machine that has a key and whose agent does not start with it; no service answers there.
async fn play(machine: &Machine, enabled: &str) -> Outcome {
    let (etc, bin, roles) = (machine.path("etc"), machine.path("bin"), machine.path("roles"));
    let originals = packaging().join("ansible/roles");
    let mut files = Vec::new();
    collect(&originals, &mut files);
    for (path, content) in files {
        // Without a root the role looks at the machine itself, so its copy looks elsewhere.
        let original = String::from_utf8(content).unwrap().replace("{{ signalbox_agent_root }}/etc/", "/etc/");
        let text = original.replace("/etc/", &format!("{}/", etc.display()));
        let copy = roles.join(path.strip_prefix(&originals).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, text).unwrap();
    }
    fs::create_dir_all(machine.path(KEY_FILE).parent().unwrap()).unwrap();
    fs::write(machine.path(KEY_FILE), "key\n").unwrap();
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("systemctl"), SYSTEMCTL).unwrap();
    fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let variables = json!({"signalbox_agent_url": "http://127.0.0.1:1", "signalbox_agent_enrolment_token": "unused"});
    let role = json!({"role": "signalbox_agent", "vars": variables});
    let plays = json!([{"hosts": "all", "gather_facts": false, "roles": [role]}]);
    fs::write(machine.path("playbook.yaml"), plays.to_string()).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join("target/test-tools/bin/ansible-playbook"));
    command.env_clear().env("PATH", path).env("HOME", machine.root.path()).env("LC_ALL", "C.UTF-8");
    command.env("ANSIBLE_ROLES_PATH", &roles).env("CALLS", machine.path("calls")).env("no_proxy", "*");
    command
        .args(["-c", "local", "-i", "localhost,", "-e", "ansible_python_interpreter={{ ansible_playbook_python }}"])
        .args(["-e", &format!("signalbox_agent_enabled={enabled}")])
        .arg(machine.path("playbook.yaml"));
    run(command).await
}

#[actix_web::test]
async fn the_role_of_ansible_keeps_an_agent_off() {
    let machine = Machine::new();

    let outcome = play(&machine, "false").await;

    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let calls = machine.read("calls");
    let changes: Vec<&str> = calls.lines().filter(|call| !["show", "is-enabled"].contains(call)).collect();
    assert_eq!(changes, ["disable", "stop"], "{outcome:?}");
}

#[actix_web::test]
async fn the_role_of_ansible_finishes_an_installation_that_failed_half_way() {
    let machine = Machine::new();

    let outcome = play(&machine, "true").await;

    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stdout.contains("http://127.0.0.1:1/install.sh"), "{outcome:?}");
    assert!(!machine.path("calls").exists(), "{outcome:?}");
}

//! The systemd unit: as strict as the policy permits.

use std::fs;
use std::process::Command;

use super::{AGENT, KEY, Machine, Shop, UNIT};
use crate::support::command_line::run;

/// The settings of a hardened unit, which one that is to run commands lacks.
const HARDENING: &[&str] = &[
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "ProtectSystem=strict",
    "ProtectHome=read-only",
    "PrivateDevices=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "RestrictNamespaces=yes",
    "MemoryDenyWriteExecute=yes",
    "SystemCallFilter=@system-service",
];

/// The unit of an installation with these options.
async fn unit(shop: &Shop, arguments: &[&str]) -> (Machine, Vec<String>) {
    let machine = Machine::new();
    machine.installed(&shop.url(), &[&["--key", KEY], arguments].concat()).await;
    let lines = machine.read(UNIT).lines().map(str::to_owned).collect();
    (machine, lines)
}

#[track_caller]
fn assert_has(unit: &[String], line: &str, is_there: bool) {
    assert_eq!(unit.iter().any(|of| of == line), is_there, "{line}: {unit:#?}");
}

#[actix_web::test]
async fn an_agent_that_only_reads_may_do_nothing_else() {
    let shop = Shop::open().await;

    let (_machine, unit) = unit(&shop, &["--docker", "control", "--logs", "on", "--log-path", "/home/app/log"]).await;

    for line in HARDENING {
        assert_has(&unit, line, true);
    }
    for line in
        ["User=signalbox-agent", "StateDirectory=signalbox-agent", "RestartPreventExitStatus=2 3", "PrivateTmp=yes"]
    {
        assert_has(&unit, line, true);
    }
}

#[actix_web::test]
async fn commands_and_terminals_are_not_crippled() {
    let shop = Shop::open().await;

    for option in ["--commands", "--terminal"] {
        let (_machine, unit) = unit(&shop, &[option, "on"]).await;

        for line in HARDENING {
            assert_has(&unit, line, false);
        }
        assert_has(&unit, "User=signalbox-agent", true);
        assert_has(&unit, "KillMode=process", true);
        assert!(unit.iter().any(|line| line.starts_with("# Not hardened: ")), "{unit:#?}");
    }
}

#[actix_web::test]
async fn a_policy_that_forbids_commands_again_makes_the_unit_strict_again() {
    let shop = Shop::open().await;
    let (machine, before) = unit(&shop, &["--commands", "on"]).await;
    assert_has(&before, "ProtectSystem=strict", false);

    machine.installed(&shop.url(), &["--commands", "off"]).await;

    assert!(machine.read(UNIT).contains("\nProtectSystem=strict\n"));
}

#[actix_web::test]
async fn a_log_in_a_temporary_directory_stays_visible() {
    let shop = Shop::open().await;

    for path in ["/tmp/app.log", "/var/tmp/logs"] {
        let (_machine, unit) = unit(&shop, &["--logs", "on", "--log-path", "/srv/log", "--log-path", path]).await;

        assert_has(&unit, "PrivateTmp=no", true);
        assert_has(&unit, "PrivateTmp=yes", false);
    }
}

#[actix_web::test]
async fn systemd_understands_it() {
    let shop = Shop::open().await;

    for options in [[].as_slice(), &["--commands", "on"]] {
        let (machine, lines) = unit(&shop, options).await;
        assert_has(&lines, "[Service]", true);
        // It checks whether the program exists.
        let text = lines.join("\n").replace("/usr/local/bin/signalbox-agent", machine.path(AGENT).to_str().unwrap());
        let file = machine.path("signalbox-agent.service");
        fs::write(&file, text).unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no"]).arg(&file);
        let outcome = run(command).await;

        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    }
}

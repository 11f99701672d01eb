//! Refusals: with one line, before anything is written.

use std::fs;

use super::line::{BadLine, Fault};
use super::{AGENT, KEY, Machine, Shop, assert_refused, own_program, shell};
use crate::real_agent::unprivileged;
use crate::support::command_line::run;

#[actix_web::test]
async fn what_has_not_its_shape_is_refused_before_anything_is_written() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    let long_key = format!("{KEY}A");
    let cases: &[(&[&str], &str)] = &[
        (&[], "no key is given"),
        (&["--key", "secret"], "no agent's key"),
        (&["--key", &KEY[1..]], "no agent's key"),
        (&["--key", &long_key], "no agent's key"),
        (&["--key", &KEY.replace('A', "'")], "no agent's key"),
        (&["--key", &format!("{KEY}\n{KEY}")], "no agent's key"),
        (&["--key-file", "/nowhere"], "/nowhere"),
        (&["--key-file", "/etc/hostname"], "no agent's key"),
        (&["--key"], "--key needs a value"),
        (&["--key", KEY, "--commands", "yes"], "--commands must be one of: off signed on"),
        (&["--key", KEY, "--docker=on"], "--docker must be one of: off read signed control"),
        (&["--key", KEY, "--logs", "on\"\ncommands = \"on"], "--logs must be one of"),
        (&["--key", KEY, "--log-path", "var/log"], "absolute"),
        (&["--key", KEY, "--log-path", "/var/log\"]\ncommands = \"on\"\n#"], "--log-path takes"),
        (&["--key", KEY, "--log-path", "/$(id)"], "--log-path takes"),
        (&["--key", KEY, "--interval", "0.4"], "--interval"),
        (&["--key", KEY, "--interval", "3601"], "--interval"),
        (&["--key", KEY, "--interval", "5\nX=1"], "--interval"),
        (&["--key", KEY, "--url", "ftp://box"], "--url"),
        (&["--key", KEY, "--url", "http://a\nB=c"], "--url"),
        (&["--key", KEY, "--url", "http://a';id;'"], "--url"),
        (&["--key", KEY, "--ca-file", "/etc/hostname"], "no certificate"),
        (&["--key", KEY, "--ca-file", "/nowhere.pem"], "/nowhere.pem cannot be read"),
        (&["--key", KEY, "--upgrade"], "there is no option --upgrade"),
        (&["--key", KEY, "--upgrade=1"], "there is no option --upgrade"),
    ];

    for (arguments, named) in cases {
        let outcome = machine.install(&shop.url(), arguments).await;

        assert_refused(&outcome, named);
        assert_eq!(fs::read_dir(&machine.root).unwrap().count(), 0, "{arguments:?}");
    }
}

#[actix_web::test]
async fn a_key_in_the_wrong_place_is_not_repeated() {
    let shop = Shop::open().await;
    let machine = Machine::new();

    for arguments in [[KEY].as_slice(), &["--key", KEY, KEY], &[&format!("--{KEY}")], &["--key", &format!("{KEY}x")]] {
        let outcome = machine.install(&shop.url(), arguments).await;

        assert_refused(&outcome, "");
        assert!(!outcome.stderr.contains(&KEY[..20]), "{outcome:?}");
    }
}

#[actix_web::test]
async fn a_download_that_was_damaged_or_cut_changes_nothing() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    let before = machine.files();
    // Long enough that a cut leaves a part of it.
    shop.stock(&own_program(), &format!("#!/bin/sh\nexit 0\n{}", "# more\n".repeat(20_000)));
    let path = format!("/install/{}", own_program());

    for (fault, named) in [(Fault::Damaged(50_000), "the download is damaged"), (Fault::Cut(50_000), "cannot download")]
    {
        let line = BadLine::to(shop.service.address, &path, fault).await;
        let outcome = machine.install(&line.url(), &["--url", &line.url(), "--key", KEY, "--logs", "on"]).await;

        assert_refused(&outcome, named);
        assert!(machine.files() == before, "{fault:?} changed something");
    }
    // Over a line of the same kind that damages nothing relevant, it is installed.
    let line = BadLine::to(shop.service.address, "/nothing", Fault::Cut(0)).await;
    machine.installed(&line.url(), &[]).await;
}

#[actix_web::test]
async fn two_instances_with_different_agents_are_no_damage() {
    let (shop, other) = (Shop::open().await, Shop::empty().await);
    other.stock(&own_program(), "#!/bin/sh\n# A newer one.\nexit 0\n");
    let line = BadLine::in_turn([shop.service.address, other.service.address]).await;
    let machine = Machine::new();

    machine.installed(&line.url(), &["--url", &line.url(), "--key", KEY]).await;

    assert!(machine.path(AGENT).exists());
}

#[actix_web::test]
async fn a_checksum_that_was_cut_installs_nothing() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    let path = format!("/install/{}.sha256", own_program());

    let line = BadLine::to(shop.service.address, &path, Fault::Cut(20)).await;
    let outcome = machine.install(&line.url(), &["--key", KEY]).await;

    assert_refused(&outcome, "no checksum");
    assert_eq!(machine.files(), []);
}

#[actix_web::test]
async fn a_program_that_does_not_run_here_is_not_installed() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    let before = machine.files();

    shop.stock(&own_program(), "\u{7f}ELF of another machine");
    let outcome = machine.install(&shop.url(), &[]).await;

    assert_refused(&outcome, "does not run on this machine");
    assert!(machine.files() == before, "something was changed");
}

#[actix_web::test]
async fn a_machine_without_a_matching_agent_is_refused() {
    let shop = Shop::empty().await;
    let machine = Machine::new();

    let outcome = machine.install(&shop.url(), &["--key", KEY]).await;

    assert_refused(&outcome, &format!("the service has no agent for linux-{}", std::env::consts::ARCH));
    assert_eq!(machine.files(), []);
}

#[actix_web::test]
async fn a_404_in_an_address_is_no_answer() {
    let shop = Shop::open().await;
    let machine = Machine::new();

    let outcome = machine.install(&shop.url(), &["--key", KEY, "--url", "http://127.0.0.1:404"]).await;

    assert_refused(&outcome, "cannot download http://127.0.0.1:404/install/");
}

/// What a service says is printed for a person at a terminal.
#[actix_web::test]
async fn words_from_elsewhere_do_not_control_a_terminal() {
    let shop = Shop::empty().await;
    // All of the script except the line that would run it.
    let mut command =
        shell(r#"eval "$(curl -fsSL "$1/install.sh" | sed '$d')"; printf 'one\nno\033[31m \rthing\177\n' | plain"#);
    command.arg(shop.url());

    let outcome = run(command).await;

    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("no[31m thing\n", ""), "{outcome:?}");
}

#[actix_web::test]
async fn a_second_run_waits_for_nobody_and_changes_nothing() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    let before = machine.files();
    let first = fs::File::open(machine.path(AGENT).parent().unwrap()).unwrap();
    first.lock().unwrap();

    for arguments in [["--logs", "on"].as_slice(), &["--uninstall"]] {
        let outcome = machine.install(&shop.url(), arguments).await;

        assert_refused(&outcome, "another run of this script");
        assert!(machine.files() == before, "something was changed");
    }
    drop(first);
    machine.installed(&shop.url(), &["--logs", "on"]).await;
}

#[actix_web::test]
async fn a_script_that_was_cut_does_nothing() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    let before = machine.files();
    let script = shop.service.root.get("/install.sh").expect_answer(200).await.text;
    let script = script.trim_end();
    // Everywhere, and at every byte of the line that would run it.
    let last_line = script.rfind('\n').unwrap();
    let cuts = (0..last_line).step_by(211).chain(last_line..script.len());

    for cut in cuts {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, &script[..cut]).unwrap();
        let mut command = shell(r#"dash -s -- --uninstall <"$1""#);
        command.env("SIGNALBOX_ROOT", machine.root.path()).arg(file.path());
        let outcome = run(command).await;

        assert_eq!(outcome.stdout, "", "cut at {cut}: {outcome:?}");
    }
    assert!(machine.files() == before, "half a script did something");
    assert!(machine.path(AGENT).exists());
}

#[actix_web::test]
async fn a_user_other_than_root_learns_how_to_run_it_by_hand() {
    let shop = Shop::open().await;
    let mut command = unprivileged(std::path::Path::new("/usr/bin/env"));
    command.args([
        "-i",
        "PATH=/usr/bin:/bin",
        "no_proxy=*",
        "sh",
        "-c",
        "curl -fsSL \"$1/install.sh\" | dash -s -- --key \"$2\" --logs on",
        "sh",
    ]);
    command.args([shop.url().as_str(), KEY]);

    let outcome = run(command).await;

    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.starts_with("install.sh: only root can install the agent"), "{outcome:?}");
    let by_hand = format!("./signalbox-agent --url {} --key-file agent.key --logs on\n", shop.url());
    assert!(outcome.stderr.ends_with(&by_hand), "{outcome:?}");
    assert!(outcome.stderr.contains(&format!("{}/install/{}", shop.url(), own_program())), "{outcome:?}");
    assert!(!outcome.stderr.contains(KEY), "{outcome:?}");
}

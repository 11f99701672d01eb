//! Which source of signers a value of `--signers` is: its form says it, and nothing in the directory where the script runs.

use std::fs;

use tempfile::TempDir;

use super::signers::{OwnServer, SIGNERS, public_key};
use super::{KEY, Machine, Shop, assert_refused, own_program, shell};
use crate::support::command_line::{Outcome, run};
use crate::support::keygen::Keygen;

/// An installation whose script runs in a directory, which is also its user's home.
async fn install_in(directory: &TempDir, shop: &Shop, machine: &Machine, signers: &str) -> Outcome {
    // What runs a command gives it a directory of its own.
    let mut command = shell(r#"cd "$1" && curl -fsSL "$2/install.sh" | { shift 2; dash -s -- "$@"; }"#);
    command.env("SIGNALBOX_ROOT", machine.root.path()).env("HOME", directory.path());
    command.arg(directory.path()).arg(shop.url());
    command.args(["--key", KEY, "--commands", "signed", "--signers", signers]);
    run(command).await
}

#[actix_web::test]
async fn a_file_with_the_name_of_an_address_or_a_key_is_not_read() {
    let (shop, keygen, directory) = (Shop::with_agent().await, Keygen::new(), TempDir::new().unwrap());
    let [ada, eve] = ["ada", "eve"].map(|name| public_key(&keygen, name));
    let own = OwnServer::answers("200 OK", &ada).await;
    // With its comment: a value may end with a slash, and no file can have such a name.
    let key = format!("ada {ada} test");
    for planted in [own.url(), format!("ada={}", own.url()), key.clone()] {
        let file = directory.path().join(planted);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("ada {eve}\n")).unwrap();
    }

    for (signers, line) in [(format!("ada={}", own.url()), format!("ada {ada}\n")), (key.clone(), format!("{key}\n"))] {
        let machine = Machine::new();
        let outcome = install_in(&directory, &shop, &machine, &signers).await;

        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
        assert_eq!(machine.read(SIGNERS), line);
    }
}

#[actix_web::test]
async fn what_is_before_the_first_equals_sign_is_a_name_unless_it_is_a_path() {
    let (shop, keygen, directory) = (Shop::with_agent().await, Keygen::new(), TempDir::new().unwrap());
    let [ada, eve] = ["ada", "eve"].map(|name| public_key(&keygen, name));
    fs::write(directory.path().join("ada=x.pub"), format!("eve {eve}\n")).unwrap();

    let alone = install_in(&directory, &shop, &Machine::new(), "ada=x.pub").await;
    assert_refused(&alone, "what is before the = is a name; to read this file, write ./ada=x.pub");
    fs::write(directory.path().join("x.pub"), &ada).unwrap();

    for (signers, line) in [("ada=x.pub", format!("ada {ada}\n")), ("./ada=x.pub", format!("eve {eve}\n"))] {
        let machine = Machine::new();
        let outcome = install_in(&directory, &shop, &machine, signers).await;

        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
        assert_eq!(machine.read(SIGNERS), line);
    }
}

#[actix_web::test]
async fn settings_for_curl_lead_to_no_other_address() {
    let (shop, keygen, home) = (Shop::with_agent().await, Keygen::new(), TempDir::new().unwrap());
    let own = OwnServer::answers("200 OK", &format!("eve {}\n", public_key(&keygen, "eve"))).await;
    let moved = OwnServer::answers(&format!("302 Found\r\nLocation: {}", own.url()), "").await;
    fs::write(home.path().join(".curlrc"), "location\ninsecure\n").unwrap();
    let machine = Machine::new();

    let outcome = install_in(&home, &shop, &machine, &moved.url()).await;

    assert_refused(&outcome, "the list at 127.0.0.2 is elsewhere now (status 302)");
    assert_eq!(machine.files(), []);
}

#[actix_web::test]
async fn an_agent_that_knows_no_signers_is_too_old_for_them_and_good_for_the_rest() {
    let (shop, keygen, directory) = (Shop::empty().await, Keygen::new(), TempDir::new().unwrap());
    let old = "[ \"$1\" = --version ] && exit 0\necho \"signalbox-agent: unexpected argument '$1' found\" >&2\nexit 2";
    shop.stock(&own_program(), &format!("#!/bin/sh\n{old}\n"));
    let machine = Machine::new();

    let ada = format!("ada {}", public_key(&keygen, "ada"));
    let outcome = install_in(&directory, &shop, &machine, &ada).await;

    assert_refused(&outcome, "the service's agent cannot check signers: it is too old");
    assert_eq!(machine.files(), []);
    machine.installed(&shop.url(), &["--key", KEY]).await;
}

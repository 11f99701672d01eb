//! `--updates` and `--release-signers`: whose builds the agent takes, said on the machine's own command line.

use super::signers::public_key;
use super::{KEY, Machine, POLICY, Shop};
use crate::support::command_line::Outcome;
use crate::support::keygen::Keygen;

const RELEASE_SIGNERS: &str = "etc/signalbox-agent/release_signers";

async fn install(shop: &Shop, machine: &Machine, arguments: &[&str]) -> Outcome {
    machine.install(&shop.url(), &[&["--key", KEY], arguments].concat()).await
}

#[actix_web::test]
async fn release_signers_are_pinned_shown_and_kept_apart_from_those_of_commands() {
    let (shop, machine, keygen) = (Shop::with_agent().await, Machine::new(), Keygen::new());
    let [ada, ben, release] = ["ada", "ben", "release"].map(|name| public_key(&keygen, name));
    let own = format!("release@example.org namespaces=\"signalbox-agent-release-v1\" {release}");

    let outcome = install(
        &shop,
        &machine,
        &["--updates", "signed", "--release-signers", &own, "--commands", "signed", "--signers", &format!("{ada} ada")],
    )
    .await;

    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    let shown = format!(
        "signers that are added to /etc/signalbox-agent/release_signers:\n  release@example.org ssh-ed25519 {}\n",
        keygen.fingerprint(&release)
    );
    assert!(outcome.stdout.contains(&shown), "{outcome:?}");
    assert!(outcome.stdout.contains("note: the agent takes newer builds of itself from the service"), "{outcome:?}");
    assert_eq!((machine.read(RELEASE_SIGNERS), machine.mode(RELEASE_SIGNERS)), (format!("{own}\n"), 0o644));
    assert_eq!(machine.read("etc/signalbox-agent/allowed_signers"), format!("ada {ada}\n"));
    let policy = machine.read(POLICY);
    for line in ["updates = \"signed\"", "release_signers = \"/etc/signalbox-agent/release_signers\""] {
        assert_eq!(policy.lines().filter(|it| *it == line).count(), 1, "{line}: {policy}");
    }

    // Another key is added, an upgrade changes nothing, and off is off.
    install(&shop, &machine, &["--release-signers", &format!("{ben} ben")]).await;
    assert_eq!(machine.read(RELEASE_SIGNERS), format!("{own}\nben {ben}\n"));
    let before = machine.files();
    machine.installed(&shop.url(), &[]).await;
    assert!(machine.files() == before, "something was changed");
    let off = install(&shop, &machine, &["--updates", "off"]).await;
    assert_eq!(off.code, Some(0), "{off:?}");
    let policy = machine.read(POLICY);
    assert!(policy.contains("\nupdates = \"off\"\n") && !policy.contains("release_signers"), "{policy}");
    assert_eq!(machine.read(RELEASE_SIGNERS), format!("{own}\nben {ben}\n"));
    machine.installed(&shop.url(), &["--uninstall"]).await;
    assert_eq!(machine.files(), []);
}

#[actix_web::test]
async fn updates_without_a_key_that_may_sign_builds_change_nothing() {
    let (shop, machine, keygen) = (Shop::with_agent().await, Machine::new(), Keygen::new());
    let ada = public_key(&keygen, "ada");
    let for_commands = format!("ada namespaces=\"signalbox-command-v1\" {ada}");
    let own_address = format!("{}/install.sh", shop.url());
    let cases: [(&[&str], &str); 6] = [
        (&["--updates", "on"], "--updates must be one of: off signed"),
        (&["--updates", "signed"], "name those whose signatures count with --release-signers"),
        (&["--release-signers", &format!("{ada} ada")], "use --updates signed, too"),
        (&["--updates", "signed", "--release-signers", &for_commands], "names nobody whose signatures count"),
        (
            &["--updates", "signed", "--release-signers", "/nowhere/key.pub"],
            "--release-signers /nowhere/key.pub: there is no such file",
        ),
        (
            &["--updates", "signed", "--release-signers", &own_address],
            "--release-signers names an address of the service itself",
        ),
    ];

    for (arguments, expected) in cases {
        let outcome = install(&shop, &machine, arguments).await;
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (Some(1), 1), "{outcome:?}");
        assert!(outcome.stderr.contains(expected), "{expected}: {outcome:?}");
        assert_eq!(machine.files(), [], "{expected}");
    }
}

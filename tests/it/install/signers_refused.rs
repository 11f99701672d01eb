//! `--signers` that are refused: with one line, before anything is written, and without repeating a secret.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use super::signers::{OwnServer, SIGNERS, public_key};
use super::{KEY, Machine, POLICY, Shop, assert_refused};
use crate::support::command_line::Outcome;
use crate::support::keygen::Keygen;

/// An installation on a machine of its own, which has to fail and to leave no file.
async fn refused(shop: &Shop, signers: &str, named: &str) -> Outcome {
    let machine = Machine::new();

    let arguments = ["--key", KEY, "--commands", "signed", "--signers", signers];
    let outcome = machine.install(&shop.url(), &arguments).await;

    assert_refused(&outcome, named);
    assert_eq!(machine.files(), [], "{signers}");
    outcome
}

#[actix_web::test]
async fn the_services_own_address_is_no_source_of_signers() {
    let shop = Shop::with_agent().await;
    let port = shop.service.address.port();
    let named = "names an address of the service itself (127.0.0.1)";

    for address in [
        format!("http://127.0.0.1:{port}/ops.keys"),
        // Another program there may be the attacker's, too.
        "http://127.0.0.1:1/ops.keys".to_owned(),
        "https://127.0.0.1/ops.keys".to_owned(),
        "ada=https://127.0.0.1./ops.keys?x=1".to_owned(),
    ] {
        refused(&shop, &address, named).await;
    }
    // The script came from one address, and the agent is to connect to another.
    let machine = Machine::new();
    let other = format!("http://localhost:{port}");
    let list = "https://LOCALHOST/ops.keys";
    let arguments = ["--key", KEY, "--url", &other, "--commands", "signed", "--signers", list];
    let outcome = machine.install(&shop.url(), &arguments).await;
    assert_refused(&outcome, "names an address of the service itself (localhost)");
}

#[actix_web::test]
async fn addresses_have_tls_and_a_host() {
    let shop = Shop::with_agent().await;

    for address in [
        "http://example.org/ops.keys",
        "http://127.evil.example/ops.keys",
        "http://localhost.evil.example/ops.keys",
        "ftp://example.org/ops.keys",
        "HTTP://example.org",
    ] {
        refused(&shop, address, "--signers takes an https address").await;
    }
    refused(&shop, "https://ada@example.org/ops.keys", "has a character that none may have").await;
    refused(&shop, "https://example.org/$(id)", "has a character that none may have").await;
    refused(&shop, "https://%6c/ops.keys", "names no host").await;
    refused(&shop, "https:///ops.keys", "names no host").await;
}

#[actix_web::test]
async fn what_is_no_key_is_refused_and_not_repeated() {
    let (shop, keygen) = (Shop::with_agent().await, Keygen::new());
    let ada = public_key(&keygen, "ada");
    let (kind, key) = ada.split_once(' ').unwrap();
    let cut = &key[..key.len() - 8];
    let cases = [
        ("/nowhere/ops.keys".to_owned(), "--signers /nowhere/ops.keys: there is no such file"),
        ("ada=/nowhere".to_owned(), "--signers /nowhere: there is no such file"),
        ("hunter2hunter2".to_owned(), "one of its values is none of these"),
        ("hunter2 hunter2".to_owned(), "line 1 of the value of --signers is no public key"),
        (String::new(), "--signers needs a value"),
        (" ".to_owned(), "the value of --signers names no signer"),
        ("ada=".to_owned(), "one of its values is none of these"),
        ("/a b.pub".to_owned(), "--signers takes no file with a space in its path"),
        (ada.clone(), "line 1 of the value of --signers says not whose key it is"),
        (format!("{ada} laptop of ada"), "says not whose key it is"),
        (format!("{ada} *@example.org"), "says not whose key it is"),
        (format!("{ada}\n{ada}"), "--signers takes one line"),
        (format!("ada=ben {ada}"), "is no key without a name"),
        (format!("ada {kind}"), "is no public key"),
        (format!("ada {kind} {cut}"), "the value of --signers cannot be used: line 1: the key: "),
        (format!("ada {kind} A{key}"), "line 1: the key is not base64"),
        (format!("ada ssh-rsa {key}"), "line 1: the key is of another type than the line says"),
        (format!("ada cert-authority {ada}"), "line 1: `cert-authority` is not supported"),
        (format!("*@example.org {ada}"), "patterns are not supported"),
        (format!("ada namespaces=\"git\" {ada}"), "names nobody whose signatures count"),
        ("ada sk-webauthn oA box.example.org".to_owned(), "line 1: the passkey: "),
    ];

    for (signers, named) in cases {
        let outcome = refused(&shop, &signers, named).await;
        assert!(!outcome.stderr.contains("hunter2"), "{outcome:?}");
    }
}

#[actix_web::test]
async fn a_private_key_is_refused_and_not_repeated() {
    let (shop, keygen) = (Shop::with_agent().await, Keygen::new());
    public_key(&keygen, "ada");
    let private = fs::read_to_string(keygen.path("ada")).unwrap();
    let own = OwnServer::answers("200 OK", &private).await;
    let putty = keygen.path("ada.ppk");
    fs::write(&putty, "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nAAAAsecret\n").unwrap();
    let ada = keygen.path("ada");

    for signers in [private.as_str(), &own.url(), ada.to_str().unwrap(), putty.to_str().unwrap()] {
        let outcome = refused(&shop, signers, "a private key: use the public one").await;
        let secret = private.lines().nth(1).unwrap();
        assert!(
            !format!("{outcome:?}").contains(&secret[..20]) && !format!("{outcome:?}").contains("AAAAsecret"),
            "{outcome:?}"
        );
    }
}

#[actix_web::test]
async fn a_list_with_one_bad_line_installs_none() {
    let (shop, keygen) = (Shop::with_agent().await, Keygen::new());
    let (ada, ben) = (public_key(&keygen, "ada"), public_key(&keygen, "ben"));
    let good = format!("# ops\nada {ada}\n\n");
    let answers = [
        ("200 OK", format!("{good}ben {ben}x\n"), "the list at 127.0.0.2 cannot be used: line 4: the key"),
        ("200 OK", format!("{good}{ben}\n"), "line 4 of the list at 127.0.0.2 says not whose key it is"),
        ("200 OK", format!("{good}<html>\u{1b}[31m</html>\n"), "line 4 of the list at 127.0.0.2 is no public key"),
        ("200 OK", format!("{good}ben no\u{1b}[31mpty {ben}\n"), "line 4: a line has a control character"),
        ("200 OK", String::new(), "the list at 127.0.0.2 names no signer"),
        ("200 OK", "# nobody\n\n".to_owned(), "the list at 127.0.0.2 names no signer"),
        ("200 OK", format!("{good}{}", " ".repeat(1 << 20)), "the list at 127.0.0.2 is longer than 1 MiB"),
        ("404 Not Found", good.clone(), "the list at 127.0.0.2 cannot be downloaded (status 404)"),
        ("302 Found\r\nLocation: http://127.0.0.1/x", good.clone(), "is elsewhere now (status 302)"),
    ];

    for (head, body, named) in answers {
        let own = OwnServer::answers(head, &body).await;
        let outcome = refused(&shop, &own.url(), named).await;
        assert!(!outcome.stderr.contains('\u{1b}'), "{outcome:?}");
    }
    let cut = OwnServer::cuts(&good).await;
    refused(&shop, &cut.url(), "the list at 127.0.0.2 was not transferred as a whole").await;
    let endless = OwnServer::endless().await;
    refused(&shop, &endless.url(), "the list at 127.0.0.2 is longer than 1 MiB").await;
    let gone = OwnServer::answers("200 OK", &good).await.url();
    refused(&shop, &gone, "the list at 127.0.0.2 cannot be downloaded: curl: ").await;
    let empty = keygen.path("empty");
    fs::write(&empty, "").unwrap();
    refused(&shop, empty.to_str().unwrap(), "names no signer").await;
    refused(&shop, "/etc", "--signers /etc is no regular file").await;
    refused(&shop, "/etc/hostname", "line 1 of --signers /etc/hostname is no public key").await;
}

/// What somebody did to the file of signers.
type Spoil = fn(&Machine);

/// A file that others could have written would become root's, with whatever stands in it.
#[actix_web::test]
async fn a_file_in_place_that_others_can_change_is_not_made_trusted() {
    let (shop, keygen) = (Shop::with_agent().await, Keygen::new());
    let (ada, eve) = (public_key(&keygen, "ada"), public_key(&keygen, "eve"));
    let cases: [(&str, Spoil); 4] = [
        ("others than root can have changed", |machine| {
            fs::set_permissions(machine.path(SIGNERS), Permissions::from_mode(0o664)).unwrap();
        }),
        ("others than root can have changed", |machine| {
            fs::set_permissions(machine.path(SIGNERS), Permissions::from_mode(0o646)).unwrap();
        }),
        ("is a link", |machine| {
            fs::rename(machine.path(SIGNERS), machine.path("elsewhere")).unwrap();
            symlink(machine.path("elsewhere"), machine.path(SIGNERS)).unwrap();
        }),
        ("cannot be used: line 2: ", |machine| {
            let text = machine.read(SIGNERS);
            fs::write(machine.path(SIGNERS), format!("{text}eve\n")).unwrap();
        }),
    ];

    for (named, spoil) in cases {
        let machine = Machine::new();
        fs::create_dir_all(machine.path(SIGNERS).parent().unwrap()).unwrap();
        fs::write(machine.path(SIGNERS), format!("eve {eve}\n")).unwrap();
        spoil(&machine);
        let before = machine.files();

        let arguments = ["--key", KEY, "--commands", "signed", "--signers", &format!("ada {ada}")];
        let outcome = machine.install(&shop.url(), &arguments).await;

        assert_refused(&outcome, named);
        assert!(machine.files() == before, "{named}: something was changed");
    }
}

/// The agent refuses a policy of only half of it.
#[actix_web::test]
async fn a_policy_is_about_signatures_as_a_whole_or_not_at_all() {
    let (shop, machine, keygen) = (Shop::with_agent().await, Machine::new(), Keygen::new());
    let ada = format!("ada {}", public_key(&keygen, "ada"));
    let install = async |arguments: &[&str]| machine.install(&shop.url(), &[&["--key", KEY], arguments].concat()).await;

    assert_refused(&install(&["--signers", &ada]).await, "--signers is for what has to be signed");
    assert_refused(&install(&["--commands", "on", "--signers", &ada]).await, "--signers is for what has to be signed");
    assert_refused(&install(&["--terminal", "signed"]).await, "nobody could sign");
    assert_eq!(machine.files(), []);
    let signed = install(&["--commands", "signed", "--terminal", "on", "--signers", &ada]).await;
    assert_eq!((signed.code, signed.stderr.as_str()), (Some(0), ""), "{signed:?}");
    assert!(signed.stdout.contains("note: what is \"on\" needs no signature"), "{signed:?}");
    let people = machine.read(POLICY).replace("terminal = \"on\"", "terminal = [\"ada\"]");
    fs::write(machine.path(POLICY), people).unwrap();
    let people = install(&["--docker", "control"]).await;
    assert!(people.stdout.contains("note: what people in a list ask for needs no signature"), "{people:?}");
    assert!(people.stdout.contains("note: containers need no signature"), "{people:?}");
    let before = machine.files();
    assert_refused(&install(&["--commands", "off"]).await, "nothing would have to be signed, and the policy has name");
    assert!(machine.files() == before, "something was changed");
    let two = format!("{}approvals = 2\n", machine.read(POLICY));
    fs::write(machine.path(POLICY), &two).unwrap();
    let before = machine.files();
    let refusal = "the agent refuses the policy: signers: /etc/signalbox-agent/allowed_signers names 1 people";
    assert_refused(&install(&["--signers", &ada]).await, refusal);
    assert!(machine.files() == before, "something was changed");
    fs::write(machine.path(POLICY), two.replace("approvals = 2\n", "")).unwrap();
    let with_allow = format!("{}allow = [\"id\"]\n", machine.read(POLICY));
    fs::write(machine.path(POLICY), with_allow).unwrap();
    let outcome = install(&["--commands", "off", "--terminal", "signed"]).await;
    assert_refused(&outcome, "the policy has allow, which needs commands = \"signed\"");
    let elsewhere = machine.read(POLICY).replace("allowed_signers", "others");
    fs::write(machine.path(POLICY), elsewhere).unwrap();
    let outcome = install(&["--signers", &ada]).await;
    assert_refused(&outcome, "the policy names another file of signers, /etc/signalbox-agent/others");
}

#[actix_web::test]
async fn demands_in_a_wrong_form_or_without_what_they_need_change_nothing() {
    let (shop, keygen) = (Shop::with_agent().await, Keygen::new());
    let ada = format!("{} ada", public_key(&keygen, "ada"));
    let signed = ["--commands", "signed", "--signers", ada.as_str()];
    let terminal = ["--terminal", "signed", "--signers", ada.as_str()];
    let none: [&str; 0] = [];

    for (before, more, named) in [
        (&signed[..], ["--approvals", "0"], "--approvals must be a number from 1 to 10"),
        (&signed, ["--approvals", "11"], "--approvals must be a number from 1 to 10"),
        (&signed, ["--approvals", "2"], "names 1 people whose signatures count, and approvals = 2"),
        (&none, ["--approvals", "1"], "--approvals and --allow are for what has to be signed"),
        (&none, ["--allow", "uptime"], "--approvals and --allow are for what has to be signed"),
        (&terminal, ["--allow", "uptime"], "--allow is for commands that have to be signed"),
        (&signed, ["--allow", ""], "--allow takes a command"),
        (&signed, ["--allow", " uptime"], "--allow takes a command"),
        (&signed, ["--allow", "uptime | sh"], "there is no shell"),
        (&signed, ["--allow", "echo \"x\""], "there is no shell"),
        (&signed, ["--allow", "echo x\ncommands = on"], "there is no shell"),
        (&signed, ["--allow", "* -n"], "--allow names the program"),
        (&signed, ["--allow", "cat /var/log/*"], "a * stands for one whole word"),
        (&signed, ["--record", "yes"], "--record must be one of: off on"),
    ] {
        let machine = Machine::new();
        let arguments = [&["--key", KEY], before, &more[..]].concat();
        let outcome = machine.install(&shop.url(), &arguments).await;

        assert_refused(&outcome, named);
        assert_eq!(machine.files(), [], "{more:?}");
    }
}

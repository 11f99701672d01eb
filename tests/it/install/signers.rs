//! `--signers`: whose signatures count, said on the machine's own command line.

use std::fs;
use std::net::SocketAddr;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{AGENT, ENVIRONMENT, KEY, KEY_FILE, Machine, POLICY, Shop, UNIT, real_programs, shell};
use crate::support::command_line::{Launched, Outcome, run};
use crate::support::commands::answered;
use crate::support::keygen::{self, Keygen};
use crate::support::site::Site;
use crate::support::{Storage, TestService, text_of};

pub const SIGNERS: &str = "etc/signalbox-agent/allowed_signers";

/// A web server of one's own, at an address of this machine that is not the service's.
pub struct OwnServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl OwnServer {
    /// Answers every request with these lines and this body.
    pub async fn answers(head: &str, body: &str) -> Self {
        Self::says(head, body, body.len()).await
    }

    /// Announces a longer body than it sends.
    pub async fn cuts(body: &str) -> Self {
        Self::says("200 OK", body, body.len() + 100).await
    }

    async fn says(head: &str, body: &str, length: usize) -> Self {
        let answer = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        Self::sends(answer, None).await
    }

    /// Sends a comment until the client has enough.
    pub async fn endless() -> Self {
        Self::sends("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_owned(), Some(vec![b'#'; 65_536])).await
    }

    async fn sends(answer: String, more: Option<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") && client.read_buf(&mut request).await.is_ok_and(|read| read > 0)
                {
                }
                // A client may hang up as soon as it has seen enough.
                _ = client.write_all(answer.as_bytes()).await;
                while let Some(block) = &more
                    && client.write_all(block).await.is_ok()
                {}
            }
        });
        Self { address, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}/ops.keys", self.address)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Type and key of a new key, without its comment.
pub fn public_key(keygen: &Keygen, name: &str) -> String {
    keygen.generate(name, "ed25519", "").trim_end_matches(" test").to_owned()
}

fn signed(keygen: &Keygen, key: &str, server: &str) -> Value {
    let now = Timestamp::now();
    let payload = json!({
        "v": 1, "servers": [server], "kind": "command", "command": "echo done", "timeout_seconds": 60,
        "nonce": Uuid::now_v7().simple().to_string(), "not_before": now, "expires_at": now.plus_millis(300_000),
    });
    let payload = payload.to_string().into_bytes();
    let signature = keygen.sign(key, "signalbox-command-v1", &payload);
    json!({ "payload": keygen::base64(&payload), "signatures": [{ "type": "sshsig", "signature": signature }] })
}

/// The installed agent, as its unit starts it.
fn start(machine: &Machine) -> Launched {
    // The policy names a file below `/`; the root of this machine is elsewhere.
    let root = machine.root.path().display();
    let policy = machine.read(POLICY).replace("\"/etc/", &format!("\"{root}/etc/"));
    fs::write(machine.path(POLICY), policy).unwrap();
    let mut command = std::process::Command::new(machine.path(AGENT));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("STATE_DIRECTORY", machine.path("state"));
    command.arg("--key-file").arg(machine.path(KEY_FILE)).arg("--policy").arg(machine.path(POLICY));
    command.envs(machine.read(ENVIRONMENT).lines().map(|line| line.split_once('=').unwrap()));
    Launched::start(command)
}

/// The real script, the real agent, and a key of OpenSSH.
#[actix_web::test]
async fn what_a_named_signer_has_signed_runs_and_nothing_else() {
    let programs = real_programs();
    let site = Site::start_with(|config| config.install_dir = Some(programs.path().to_owned())).await;
    let (machine, keygen) = (Machine::new(), Keygen::new());
    let ada = format!("{} ada@example.org", public_key(&keygen, "ada"));
    public_key(&keygen, "eve");
    let url = format!("http://{}", site.service.address);

    let arguments =
        ["--key", &site.key, "--commands", "signed", "--name", "web-1", "--signers", &ada, "--interval", "1"];
    machine.installed(&url, &arguments).await;
    let _agent = start(&machine);
    site.until_status("online").await;

    let ask = async |signed: Option<Value>| {
        let mut body = json!({ "command": "echo done" });
        if let Some(signed) = signed {
            body["signed"] = signed;
        }
        let answer = answered(site.run_body("", body)).await;
        (answer.status, answer.json())
    };
    for (signed, reason) in [
        (None, "not_signed"),
        (Some(signed(&keygen, "eve", "web-1")), "unknown_signer"),
        (Some(signed(&keygen, "ada", "web-2")), "wrong_server"),
    ] {
        let (status, refusal) = ask(signed).await;
        assert_eq!((status, &refusal["reason"]), (400, &json!(reason)), "{refusal}");
    }
    let (status, done) = ask(Some(signed(&keygen, "ada", "web-1"))).await;
    assert_eq!((status, &done["output"]), (200, &json!("done\n")), "{done}");
}

/// An installation that works, of a server whose commands have to be signed.
async fn install(shop: &Shop, machine: &Machine, arguments: &[&str]) -> Outcome {
    let outcome = machine.install(&shop.url(), &[&["--key", KEY], arguments].concat()).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    outcome
}

#[actix_web::test]
async fn signers_come_from_keys_files_and_addresses_and_each_is_shown() {
    let (shop, machine, keygen) = (Shop::with_agent().await, Machine::new(), Keygen::new());
    let kinds = [("ada", "ed25519", ""), ("ben", "ecdsa", "384"), ("cyd", "rsa", "2048"), ("dan", "ed25519", "")];
    let keys = kinds.map(|(name, kind, bits)| keygen.generate(name, kind, bits).trim_end_matches(" test").to_owned());
    let [ada, ben, cyd, dan] = &keys;
    let passkey = keygen::passkey(&keygen.generate("eli", "ecdsa", "256"));
    let passkey = format!("sk-webauthn {passkey} box.example.org");
    let public_file = machine.path("ben.pub");
    fs::write(&public_file, format!("{ben} ben@laptop\r\n")).unwrap();
    let list = format!(
        "# on duty\n\n  cyd@example.org valid-before=\"20990101Z\",namespaces=\"git, signalbox-*\" {cyd} of work\n"
    );
    let own = OwnServer::answers("200 OK", &list).await;
    let keys_of_dan = OwnServer::answers("200 OK", dan).await;

    let outcome = install(
        &shop,
        &machine,
        &[
            "--commands",
            "signed",
            "--terminal=signed",
            "--docker",
            "signed",
            "--name",
            "web-1",
            "--signers",
            &format!("ada@example.org {ada} https://example.org/ada"),
            &format!("--signers={}", public_file.display()),
            "--signers",
            &own.url(),
            "--signers",
            &format!("dan={}", keys_of_dan.url()),
            "--signers",
            &format!("eli={passkey}"),
        ],
    )
    .await;

    let lines = list.lines().next_back().unwrap().trim();
    let expected =
        format!("ada@example.org {ada} https://example.org/ada\nben@laptop {ben}\n{lines}\ndan {dan}\neli {passkey}\n");
    assert_eq!((machine.read(SIGNERS), machine.mode(SIGNERS)), (expected, 0o644));
    let shown = format!(
        "signers that are added to /etc/signalbox-agent/allowed_signers:\n  ada@example.org ssh-ed25519 {}\n  \
         ben@laptop ecdsa-sha2-nistp384 {}\n  cyd@example.org ssh-rsa {}\n  dan ssh-ed25519 {}\n  eli passkey for box.example.org SHA256:",
        keygen.fingerprint(ada),
        keygen.fingerprint(ben),
        keygen.fingerprint(cyd),
        keygen.fingerprint(dan)
    );
    assert!(outcome.stdout.starts_with(&shown), "{shown}{outcome:?}");
    assert!(outcome.stdout.contains("note: those who sign call this server web-1\n"), "{outcome:?}");
    let policy = machine.read(POLICY);
    for line in [
        "commands = \"signed\"",
        "docker = \"signed\"",
        "terminal = \"signed\"",
        "signers = \"/etc/signalbox-agent/allowed_signers\"",
        "name = \"web-1\"",
    ] {
        assert_eq!(policy.lines().filter(|it| *it == line).count(), 1, "{line}: {policy}");
    }
    assert!(machine.read(UNIT).contains("Not hardened"), "signed commands run as the user whom the unit restricts");
}

#[actix_web::test]
async fn a_second_run_adds_nothing_twice_and_keeps_what_is_there() {
    let (shop, machine, keygen) = (Shop::with_agent().await, Machine::new(), Keygen::new());
    let [ada, ben] = ["ada", "ben"].map(|name| public_key(&keygen, name));
    let arguments = ["--commands", "signed", "--signers", &format!("{ada} ada"), "--signers", &format!("{ada} ada")];
    install(&shop, &machine, &arguments).await;
    let before = machine.files();

    let again = install(&shop, &machine, &arguments).await;
    assert!(machine.files() == before, "something was changed");
    assert!(again.stdout.contains("\nno signer is added: all keys are there\n"), "{again:?}");
    // By hand, without an end of the last line. The same key under another name would make two people one.
    fs::write(machine.path(SIGNERS), format!("# ours\nada {ada}\n#ben {ben}")).unwrap();
    let more =
        install(&shop, &machine, &["--signers", &format!("ben {ben}"), "--signers", &format!("other {ada}")]).await;

    assert_eq!(machine.read(SIGNERS), format!("# ours\nada {ada}\n#ben {ben}\nben {ben}\n"));
    assert!(more.stdout.contains("\nnot added: the key of other is there already, under the name ada; "), "{more:?}");
    let (first, second) = (keygen.fingerprint(&ada), keygen.fingerprint(&ben));
    let shown = format!(
        "signers that are in /etc/signalbox-agent/allowed_signers already, and stay:\n  ada ssh-ed25519 {first}\n\
         signers that are added to /etc/signalbox-agent/allowed_signers:\n  ben ssh-ed25519 {second}\n"
    );
    assert!(more.stdout.starts_with(&shown), "{more:?}");
    // A key that counts for less than is asked for, and one that stands in a comment only.
    let lines = format!("# {ben}\nada namespaces=\"signalbox-*\" {ada} and {ben}\n");
    fs::write(machine.path(SIGNERS), &lines).unwrap();
    let limited = install(&shop, &machine, &["--signers", &format!("ada {ada}")]).await;
    assert!(
        limited
            .stdout
            .contains("\nno signer is added\nnot added: the key of ada is there already, with other options; "),
        "{limited:?}"
    );
    install(&shop, &machine, &["--signers", &format!("ben {ben}")]).await;
    assert_eq!(machine.read(SIGNERS), format!("{lines}ben {ben}\n"));
    // An upgrade leaves them alone, and removing the agent removes them.
    let before = machine.files();
    machine.installed(&shop.url(), &[]).await;
    assert!(machine.files() == before, "something was changed");
    machine.installed(&shop.url(), &["--uninstall"]).await;
    assert_eq!(machine.files(), []);
}

#[actix_web::test]
async fn approvals_allowed_commands_and_recording_are_options_and_the_agent_reads_them() {
    let (shop, machine, keygen) = (Shop::with_agent().await, Machine::new(), Keygen::new());
    let [ada, ben] = ["ada", "ben"].map(|name| format!("{} {name}", public_key(&keygen, name)));
    let arguments = ["--commands", "signed", "--terminal", "signed", "--signers", &ada, "--signers", &ben];
    let more = ["--approvals", "2", "--allow", "systemctl restart nginx", "--allow=journalctl -n *", "--record", "on"];

    let outcome = install(&shop, &machine, &[&arguments[..], &more].concat()).await;

    let policy = machine.read(POLICY);
    for line in [
        "approvals = 2",
        "allow = [\"systemctl restart nginx\", \"journalctl -n *\"]",
        "record = \"on\"",
        "terminal = \"signed\"",
    ] {
        assert_eq!(policy.lines().filter(|it| *it == line).count(), 1, "{line}: {policy}");
    }
    for note in [
        "note: 2 different people have to sign\n",
        "note: these commands run without a signature: \"systemctl restart nginx\", \"journalctl -n *\"\n",
        "note: terminals are recorded, in /var/lib/signalbox-agent/recordings\n",
    ] {
        assert!(outcome.stdout.contains(note), "{note}: {outcome:?}");
    }

    // Later, alone: each replaces its own line.
    let outcome = install(&shop, &machine, &["--approvals", "1", "--allow", "uptime", "--record", "off"]).await;
    assert!(outcome.stdout.contains("note: one signature is enough\n"), "{outcome:?}");
    let policy = machine.read(POLICY);
    let changed =
        policy.lines().filter(|line| ["approvals = 1", "allow = [\"uptime\"]", "record = \"off\""].contains(line));
    assert_eq!(changed.count(), 3, "{policy}");
}

/// What the machine's own administrator says counts; what the service says about signatures does not.
#[actix_web::test]
async fn an_enrolment_cannot_name_signers_and_the_command_line_can() {
    let programs = real_programs();
    let start = async |storage| {
        TestService::start_on(storage, |config| config.install_dir = Some(programs.path().to_owned())).await
    };
    let service = start(Storage::fresh().await).await;
    let (owner, keygen) = (service.register("owner").await, Keygen::new());
    let body = json!({"name": "rack 4", "uses": 20, "policy": "terminal = \"on\"\n"});
    let token = service.client.post("/enrolments").bearer(&owner.token).json(body).expect(201).await;
    let token = text_of(&token["token"]);
    let ada = format!("{} ada", public_key(&keygen, "ada"));
    let enrol = async |service: &TestService, machine: &Machine, more: &[&str]| {
        let arguments = [&["--enrol", &token, "--name", "db-1"], more].concat();
        machine.install(&format!("http://{}", service.address), &arguments).await
    };

    let (first, second) = (Machine::new(), Machine::new());
    for machine in [&first, &second] {
        let outcome = enrol(&service, machine, &["--commands", "signed", "--signers", &ada]).await;
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
        assert!(outcome.stdout.contains("note: the policy of the enrolment was not written"), "{outcome:?}");
        // Also where the service answers another name, because it has a server of this one.
        assert!(outcome.stdout.contains("note: those who sign call this server db-1\n"), "{outcome:?}");
        let policy = machine.read(POLICY);
        assert!(policy.contains("\nterminal = \"off\"\n") && policy.ends_with("\nname = \"db-1\"\n"), "{policy}");
        assert_eq!(machine.read(SIGNERS).split(' ').next(), Some("ada"));
    }

    // A service whose database an attacker changes.
    let mut service = service;
    let about = "the service sent a policy about signatures";
    for (policy, named) in [
        ("commands = \"signed\"", about),
        ("signers = \"/tmp/s\"", about),
        (" 'name' = \"db-2\"", about),
        ("allow = [\"sh\"]", about),
        ("updates = \"signed\"", about),
        ("release_signers = \"/tmp/s\"", about),
        ("\"\\u0061llow\" = [\"sh\"]", "the service sent a policy that this script cannot read"),
        ("logs = \"on\"\nlogs = \"on\"", "the service sent a policy that its agent refuses: line 2: duplicate key"),
    ] {
        let storage = service.stop().await;
        storage.execute(&[&format!("UPDATE enrolments SET policy = '{}'", policy.replace('\'', "''"))]).await;
        service = start(storage).await;
        for more in [[].as_slice(), &["--commands", "signed", "--signers", &ada]] {
            let machine = Machine::new();
            let outcome = enrol(&service, &machine, more).await;

            super::assert_refused(&outcome, named);
            assert!(!machine.path(POLICY).exists() && !machine.path(AGENT).exists(), "{policy}: it was installed");
        }
    }
}

/// A machine without curl.
#[actix_web::test]
async fn gnu_wget_fetches_a_list_and_follows_no_redirect() {
    let (shop, machine, keygen) = (Shop::with_agent().await, Machine::new(), Keygen::new());
    let ada = public_key(&keygen, "ada");
    let own = OwnServer::answers("200 OK", &format!("ada {ada}\n")).await;
    let moved = OwnServer::answers(&format!("302 Found\r\nLocation: {}", own.url()), "").await;
    let cut = OwnServer::cuts(&format!("ada {ada}\n")).await;
    let tools = TempDir::new().unwrap();
    let names = "for p in wget grep sed cat cut tr od uname mktemp sha256sum chmod rm mv mkdir rmdir tail head wc ls flock id dash; \
                 do ln -s \"$(command -v $p)\" \"$1/$p\"; done";
    let mut command = shell(names);
    command.arg(tools.path());
    assert_eq!(run(command).await.code, Some(0));
    let script = shop.service.root.get("/install.sh").expect_answer(200).await.text;
    fs::write(tools.path().join("install.sh"), script).unwrap();
    let install = async |address: &str| {
        let mut command = std::process::Command::new(tools.path().join("dash"));
        command.env_clear().env("PATH", tools.path()).env("no_proxy", "*").env("SIGNALBOX_ROOT", machine.root.path());
        command.arg(tools.path().join("install.sh"));
        command.args(["--key", KEY, "--commands", "signed", "--signers", address]);
        run(command).await
    };

    let refused = install(&moved.url()).await;
    super::assert_refused(&refused, "the list at 127.0.0.2 is elsewhere now (status 302)");
    let refused = install(&cut.url()).await;
    super::assert_refused(&refused, "the list at 127.0.0.2 was not transferred as a whole");
    let refused = install(&OwnServer::endless().await.url()).await;
    super::assert_refused(&refused, "the list at 127.0.0.2 is longer than 1 MiB");
    assert_eq!(machine.files(), []);
    let outcome = install(&own.url()).await;

    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert_eq!(machine.read(SIGNERS), format!("ada {ada}\n"));
}

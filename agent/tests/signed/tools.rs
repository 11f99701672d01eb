//! What the machine's owner can ask: `check-policy` and `verify`.

use std::fs;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use crate::host::Host;
use crate::keygen;

impl Host {
    /// The exit code and what it says.
    async fn tool(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command();
        command.args(arguments).arg("--policy").arg(self.path("policy.toml"));
        let output = command.output().await.unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), said)
    }
}

#[tokio::test]
async fn check_policy_says_what_anybody_can_do() {
    let policy =
        "commands = \"signed\"\napprovals = 2\nallow = [\"journalctl -n *\"]\nlogs = \"on\"\nterminal = \"on\"\n";
    let host = Host::stopped(policy).await;

    let (code, said) = host.tool(&["check-policy"]).await;

    assert_eq!(code, Some(0), "{said}");
    for expected in [
        "Commands: run what signers have signed for this server, and what `allow` lists.\n",
        "Terminal: open one, as the user of the agent.\n",
        "Containers: see them with their logs, change none.\n",
        "Logs: read the system's log.\n",
        "Signatures: 2 different people have to sign, for the server `web-1`. Signers:\n  ada with ssh-ed25519 ",
        "\n  ben with ssh-ed25519 ",
        "holds for 366 days at most, once each time it is due.\n",
        "  journalctl -n *\n",
        "WARNING: what is \"on\" needs no signature, so the signatures protect nothing.\n",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
}

#[tokio::test]
async fn check_policy_says_that_terminals_are_recorded_and_where() {
    let policy = "commands = \"signed\"\nterminal = \"on\"\n";
    let host = Host::stopped(policy).await;
    let recording = Host::stopped(&format!("{policy}record = \"on\"\n")).await;

    let (_, silent) = host.tool(&["check-policy"]).await;
    let (code, said) = recording.tool(&["check-policy"]).await;

    assert_eq!(code, Some(0), "{said}");
    let expected = "Terminal: open one, as the user of the agent.\nRecordings: each terminal is recorded in `recordings` of the \
                    agent's state directory (with install.sh /var/lib/signalbox-agent/recordings): what it shows, never what is \
                    typed. Read them, without a signature.\n";
    assert!(said.contains(expected), "{said}");
    assert!(!silent.contains("record"), "{silent}");
}

#[tokio::test]
async fn check_policy_says_that_a_list_of_people_is_no_proof() {
    let policy = "commands = \"signed\"\ndocker = [\"team:ops\"]\nterminal = [\"ada\", \"team:ops\"]\n";
    let host = Host::stopped(policy).await;

    let (code, said) = host.tool(&["check-policy"]).await;

    assert_eq!(code, Some(0), "{said}");
    for expected in [
        "Terminal: open one, as the user of the agent. For ada, team:ops alone.\n",
        "Containers: see them with their logs; start, stop and restart any for team:ops alone.\n",
        "A list of people keeps accounts out, and nobody who controls the service.\n",
        "WARNING: what is \"on\" needs no signature",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
}

#[tokio::test]
async fn check_signers_lists_fingerprints_and_refuses_what_the_agent_would_refuse() {
    let host = Host::stopped("commands = \"signed\"\n").await;
    let [ada, ben] = [("one", "ed25519"), ("two", "ecdsa")].map(|(name, kind)| host.keygen.generate(name, kind, ""));
    let passkey = keygen::passkey(&ben);
    let file = host.path("signers");
    let check = async |text: &[u8]| {
        fs::write(&file, text).unwrap();
        let output = host.command().arg("check-signers").arg(&file).output().await.unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };

    let list = format!("# duty\nada {ada}\nben,b\u{202e} {ben}\nada sk-webauthn {passkey} Box.example.org touch\n");
    let (code, said) = check(list.as_bytes()).await;
    assert_eq!(code, Some(0), "{said}");
    let (first, second) = (host.keygen.fingerprint(&ada), host.keygen.fingerprint(&ben));
    let expected = format!(
        "ada ssh-ed25519 {first}\nben,b\\u{{202e}} ecdsa-sha2-nistp256 {second}\nada passkey for box.example.org SHA256:"
    );
    assert!(said.starts_with(&expected) && said.lines().count() == 3, "{said}");

    let for_git = format!("ada namespaces=\"git\" {ada}\n");
    for (text, expected) in [
        (format!("ada {ada}\nben x{ben}\n").as_bytes(), "signers: line 2: unknown option `xecdsa"),
        (b"ada\x1b[2J ssh-ed25519 AAAA", "signers: line 1: a line has a control character"),
        (for_git.as_bytes(), "signers names nobody whose signatures count"),
        (b"", "signers names nobody whose signatures count"),
        (b"ada \xff", "signers: invalid utf-8"),
        (&[b' '; (1 << 20) + 1], "signers: the file is too long"),
    ] {
        let (code, said) = check(text).await;
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(expected), "{expected} in {said}");
    }
}

#[tokio::test]
async fn verify_says_whether_a_payload_would_run_and_who_signed_it() {
    let host = Host::stopped("commands = \"signed\"\n").await;
    let file = host.path("signed.json");
    let verify = async |changes: &[(&str, Value)], key: &str| {
        let signed = host.sign(&host.payload(changes), &[key]);
        fs::write(&file, serde_json::to_vec(&signed).unwrap()).unwrap();
        host.tool(&["verify", file.to_str().unwrap()]).await
    };

    let (code, said) = verify(&[("command", json!("id\nwhoami"))], "ada").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("A command for web-1: id\\nwhoami\nFor at most 60 s.\nHolds from 20"), "{said}");
    assert!(said.contains("\nSigned by ada with ssh-ed25519 ") && said.ends_with("\nWould run, once.\n"), "{said}");
    for (changes, key, expected) in [
        (vec![], "eve", "no signature is by a signer whom this server knows"),
        (vec![("servers", json!(["db-1"]))], "ada", "it is for other servers than `web-1`"),
        (vec![("v", json!(7))], "ada", "version 7"),
    ] {
        let (code, said) = verify(&changes, key).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("Would not run: ") && said.contains(expected), "{said}");
    }
    let earlier = json!(Timestamp::now().plus_millis(-600_000));
    let recurs =
        |cron: &str| vec![("repeat", json!({ "cron": cron, "time_zone": "UTC" })), ("not_before", earlier.clone())];
    let (code, said) = verify(&recurs("* * * * *"), "ada").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Each time that `* * * * *` is due in UTC, from 30 s before to 5 minutes after"), "{said}");
    assert!(said.ends_with("\nWould run, once for the time at which it is due.\n"), "{said}");
    let (code, said) = verify(&recurs("0 0 29 2 *"), "ada").await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Would not run: the signed payload recurs") && said.contains("not due now"), "{said}");
    fs::write(&file, "{}").unwrap();
    let (code, said) = host.tool(&["verify", file.to_str().unwrap()]).await;
    assert_eq!(code, Some(2), "{said}");
}

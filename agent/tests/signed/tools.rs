//! What the machine's owner can ask about files: `check-policy` and `check-signers`.

use std::fs;
use std::os::unix::fs::chown;

use crate::host::Host;
use crate::keygen;

impl Host {
    /// The exit code and what it says.
    pub async fn tool(&self, arguments: &[&str]) -> (Option<i32>, String) {
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
async fn check_policy_warns_where_the_agent_runs_as_root() {
    let signed = Host::stopped("terminal = \"signed\"\n").await;
    let containers = Host::stopped("docker = \"signed\"\n").await;
    let check = async |host: &Host| {
        let state = host.path("state");
        let (code, said) = host.tool(&["check-policy", "--state-dir", state.to_str().unwrap()]).await;
        assert_eq!(code, Some(0), "{said}");
        said
    };

    assert!(!check(&signed).await.contains("WARNING"), "no agent has run");
    for host in [&signed, &containers] {
        fs::create_dir(host.path("state")).unwrap();
    }
    let said = check(&signed).await;
    let expected = format!(
        "\nWARNING: {} belongs to root, so the agent runs as root: what runs in a signed command or terminal can also change the \
         policy and the signers.\n",
        signed.path("state").display()
    );
    assert!(said.ends_with(&expected), "{said}");
    assert!(!check(&containers).await.contains("WARNING"), "it runs no programs");
    chown(signed.path("state"), Some(12_345), None).unwrap();
    assert!(!check(&signed).await.contains("WARNING"), "it is another user");
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

//! Files that others than the machine's owner could have changed end the agent at its start.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use crate::host::Host;

impl Host {
    /// Why the agent does not start.
    async fn refuses(&self) -> String {
        let mut command = self.command();
        command.args(["--url", "http://127.0.0.1:1", "--key", "sbk_test"]);
        command.arg("--state-dir").arg(self.path("state")).arg("--policy").arg(self.path("policy.toml"));
        let output = command.output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        said
    }
}

#[tokio::test]
async fn a_file_that_others_can_change_is_refused_in_one_line() {
    let host = Host::stopped("commands = \"signed\"\n").await;
    let mode = |name: &str, bits| fs::set_permissions(host.path(name), Permissions::from_mode(bits)).unwrap();

    for (name, what) in [("policy.toml", "policy file"), ("allowed_signers", "signers")] {
        for bits in [0o664, 0o646, 0o622] {
            mode(name, bits);
            let said = host.refuses().await;
            assert!(said.contains(what) && said.contains(&format!("(mode {bits:04o}): chmod go-w it")), "{said}");
        }
        mode(name, 0o644);
        chown(host.path(name), Some(12_345), None).unwrap();
        let said = host.refuses().await;
        assert!(said.contains("belongs to user 12345, and has to belong to root: chown root it"), "{said}");
        chown(host.path(name), Some(0), None).unwrap();
    }
    mode("", 0o777);
    let said = host.refuses().await;
    assert!(said.contains("others than root can change") && said.contains("(mode 0777)"), "{said}");
}

#[tokio::test]
async fn a_policy_that_cannot_mean_anything_is_refused() {
    let host = Host::stopped("commands = \"signed\"\n").await;
    let signers = host.path("allowed_signers");
    let (policy, signers_text) = (host.path("policy.toml"), fs::read_to_string(&signers).unwrap());
    let line = format!("signers = \"{}\"\n", signers.display());
    let cases = [
        ("commands = \"signed\"\n".to_owned(), "needs `name`"),
        ("commands = \"signed\"\nname = \"web-1\"\n".to_owned(), "needs `signers`"),
        (format!("name = \"web-1\"\n{line}"), "need commands, terminal or docker = \"signed\""),
        (format!("commands = \"signed\"\nname = \"web-1\"\napprovals = 3\n{line}"), "names 2 people"),
        (format!("commands = \"signed\"\nname = \"web-1\"\napprovals = 0\n{line}"), "approvals: a number from 1"),
        (format!("commands = \"signed\"\nname = \"web-1\"\nallow = [\"* x\"]\n{line}"), "would run any program"),
        ("logs = \"signed\"\n".to_owned(), "expected `off` or `on`"),
    ];
    for (text, expected) in cases {
        fs::write(&policy, &text).unwrap();
        let said = host.refuses().await;
        assert!(said.contains(expected), "{text}: {said}");
    }

    fs::write(&policy, format!("commands = \"signed\"\nname = \"web-1\"\n{line}")).unwrap();
    for (text, expected) in [
        ("", "names 0 people"),
        ("# nobody\n", "names 0 people"),
        ("ada cert-authority ssh-ed25519 AAAA\n", "line 1: `cert-authority` is not supported"),
        ("ada namespaces=\"git\" ssh-ed25519 AAAA\n", "line 1: the key"),
    ] {
        fs::write(&signers, text).unwrap();
        let said = host.refuses().await;
        assert!(said.contains(expected), "{text}: {said}");
    }
    fs::write(&signers, signers_text.replace("ben ", "ben namespaces=\"git\" ")).unwrap();
    fs::write(&policy, format!("commands = \"signed\"\nname = \"web-1\"\napprovals = 2\n{line}")).unwrap();
    assert!(host.refuses().await.contains("names 1 people whose signatures count, and approvals = 2"));
}

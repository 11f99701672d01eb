//! What check-policy and check-signers say about updates, and which files end the agent at its start.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use crate::host::Host;

impl Host {
    /// The exit code and what it says.
    async fn tool(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command();
        command.args(arguments).arg("--policy").arg(self.path("policy.toml"));
        let output = command.output().await.unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), said)
    }

    /// Why the agent does not start.
    async fn refuses(&self) -> String {
        let state = self.path("state");
        let arguments = ["--url", "http://127.0.0.1:1", "--key", "sbk_test", "--state-dir", state.to_str().unwrap()];
        let (code, said) = self.tool(&arguments).await;
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
        said
    }
}

#[tokio::test]
async fn check_policy_says_whose_builds_run_here() {
    let host = Host::stopped("updates = \"signed\"\n").await;
    let off = Host::stopped("logs = \"off\"\n").await;
    let key = fs::read_to_string(host.keygen.path("release.pub")).unwrap();
    let fingerprint = host.keygen.fingerprint(key.trim());

    let (code, said) = host.tool(&["check-policy"]).await;
    let (_, said_off) = off.tool(&["check-policy"]).await;

    assert_eq!(code, Some(0), "{said}");
    let expected = format!(
        "Updates: make the agent run newer builds of itself that one of these keys has signed, and no others:\n  release with \
         ssh-ed25519 {fingerprint}\n"
    );
    assert!(said.contains(&expected), "{said}");
    assert!(said_off.contains("Updates: none.\n"), "{said_off}");
}

#[tokio::test]
async fn check_signers_lists_the_keys_that_may_sign_builds() {
    let host = Host::stopped("updates = \"signed\"\n").await;
    let key = |name: &str| std::fs::read_to_string(host.keygen.path(&format!("{name}.pub"))).unwrap();
    let list = format!(
        "release {}old namespaces=\"signalbox-agent-release-v1\" {}eve namespaces=\"signalbox-command-v1\" {}",
        key("release"),
        key("old"),
        key("eve")
    );
    let check = async |text: &str, arguments: &[&str]| {
        host.pin(text);
        let output = host.command().arg("check-signers").args(arguments).arg(host.path("release_signers")).output();
        let output = output.await.unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };

    let (of_releases, of_commands) = (check(&list, &["--releases"]).await, check(&list, &[]).await);
    let none = check(&format!("eve namespaces=\"signalbox-command-v1\" {}", key("eve")), &["--releases"]).await;

    let names = |(code, said): &(Option<i32>, String)| {
        let names: Vec<&str> = said.lines().filter_map(|line| line.split(' ').next()).collect();
        (*code, names.join(" "))
    };
    assert_eq!(names(&of_releases), (Some(0), "release old".to_owned()));
    assert_eq!(names(&of_commands), (Some(0), "release eve".to_owned()));
    assert_eq!(none.0, Some(2), "{none:?}");
    assert!(none.1.contains("names nobody whose signatures count"), "{none:?}");
}

#[tokio::test]
async fn files_that_others_can_change_or_without_a_key_end_the_agent() {
    let host = Host::stopped("updates = \"signed\"\n").await;
    let file = host.path("release_signers");
    let key = fs::read_to_string(&file).unwrap();

    for name in ["release_signers", "policy.toml"] {
        fs::set_permissions(host.path(name), Permissions::from_mode(0o666)).unwrap();
        assert!(host.refuses().await.contains("(mode 0666): chmod go-w it"), "{name}");
        fs::set_permissions(host.path(name), Permissions::from_mode(0o644)).unwrap();
        chown(host.path(name), Some(12_345), None).unwrap();
        assert!(
            host.refuses().await.contains("belongs to user 12345, and has to belong to root: chown root it"),
            "{name}"
        );
        chown(host.path(name), Some(0), None).unwrap();
    }
    for (text, expected) in [
        (String::new(), "has no SSH key that may sign releases"),
        (
            key.replace("release ", "release namespaces=\"signalbox-command-v1\" "),
            "has no SSH key that may sign releases",
        ),
        (key.replace("release ", "release cert-authority "), "line 1: `cert-authority` is not supported"),
        ("nonsense\n".to_owned(), "line 1: a line needs principals"),
    ] {
        host.pin(&text);
        let said = host.refuses().await;
        assert!(said.contains("release_signers: ") && said.contains(expected), "{said}");
    }
    fs::remove_file(&file).unwrap();
    assert!(host.refuses().await.contains("No such file or directory"));
}

//! The start of the installed program, with a build that was taken before.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};
use signalbox_protocol::close;

use crate::host::{Host, INSTALLED, failure, sha256};
use crate::programs;

impl Host {
    /// Makes the state directory say that this build was taken.
    pub fn has_taken(&self, version: &str, program: &[u8]) {
        let offer = self.signed(&self.release(version, program), "release");
        fs::create_dir_all(self.updates()).unwrap();
        let path = self.updates().join(sha256(program));
        fs::write(&path, program).unwrap();
        let executable: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(path, executable).unwrap();
        let taken = json!({
            "version": version, "sha256": sha256(program), "starts": 0, "release": offer.release, "signature": offer.signature,
        });
        self.record(&json!({"v": 1, "taken": taken}));
    }

    pub fn read_record(&self) -> Value {
        serde_json::from_slice(&fs::read(self.updates().join("state.json")).unwrap()).unwrap()
    }

    pub fn record(&self, record: &Value) {
        fs::write(self.updates().join("state.json"), record.to_string()).unwrap();
    }
}

#[tokio::test]
async fn a_build_that_never_connects_is_given_up_after_three_starts() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    host.has_taken("99.0.0", &programs::exits());

    for start in 1..=3 {
        assert_eq!(host.run_to_the_end().await.code(), Some(0), "start {start} is one of /bin/true");
    }
    let auth = host.run().await;

    assert_eq!(auth.agent.version, INSTALLED);
    let failed = failure(&auth).unwrap();
    assert_eq!(
        (failed.version.as_str(), failed.reason.contains("never stayed connected")),
        ("99.0.0", true),
        "{failed:?}"
    );
    assert_eq!(host.kept(), ["state.json"]);
    let offer = host.genuine("99.0.0", &programs::exits());
    assert_eq!(host.offer(&offer).await, Err("failed_before".to_owned()));
}

#[tokio::test]
async fn a_build_that_dies_soon_after_it_connects_is_given_up_after_three_starts() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    host.has_taken("99.0.0", &programs::agent());

    for start in 1..=3 {
        assert_eq!(host.run().await.agent.version, "99.0.0", "start {start}");
        host.signal(Signal::KILL);
        host.ended().await;
    }

    let auth = host.run().await;
    assert_eq!(auth.agent.version, INSTALLED);
    assert!(failure(&auth).unwrap().reason.contains("never stayed connected"));
}

/// Otherwise a seized service could bring the installed build back.
#[tokio::test]
async fn a_build_whose_key_the_service_refuses_or_whose_server_it_deletes_is_not_given_up() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    host.has_taken("99.0.0", &programs::agent());

    for code in [close::UNAUTHORIZED, close::SERVER_DELETED] {
        for start in 1..=3 {
            host.service.refuse_next(code);
            assert_eq!(host.run_to_the_end().await.code(), Some(3), "start {start}");
        }
    }

    assert_eq!(host.run().await.agent.version, "99.0.0");
}

#[tokio::test]
async fn a_second_agent_by_mistake_counts_as_no_start() {
    let mut host = Host::start().await;
    host.update("99.0.0", &programs::agent()).await;
    let arguments = ["--url", "http://127.0.0.1:1", "--key", "sbk_test"];

    for _ in 0..4 {
        let mut second = host.command();
        second.args(arguments).arg("--state-dir").arg(host.path("state")).arg("--policy").arg(host.path("policy.toml"));
        let output = second.output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }

    assert_eq!(host.restart().await.agent.version, "99.0.0");
}

#[tokio::test]
async fn an_installed_program_that_is_newer_runs_and_removes_the_build() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    for version in ["0.0.1", INSTALLED] {
        host.has_taken(version, &programs::exits());

        let auth = host.run().await;

        assert_eq!((auth.agent.version.as_str(), failure(&auth)), (INSTALLED, None));
        assert_eq!(host.kept(), ["state.json"]);
        host.stop().await;
    }
}

#[tokio::test]
async fn what_the_record_says_without_a_proof_is_not_run() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    let program = programs::exits();
    host.has_taken("99.0.0", &program);
    let forged = host.signed(&host.release("99.0.0", &program), "eve");
    let record = fs::read_to_string(host.updates().join("state.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let with = |field: &str, value: Value| {
        let mut record = record.clone();
        record["taken"][field] = value;
        record
    };
    let damaged = [
        with("signature", json!(forged.signature)),
        with("signature", json!("")),
        with("release", json!(forged.release.replacen('e', "f", 1))),
        with("starts", json!(3)),
        json!({"v": 2, "taken": record["taken"]}),
        json!({"v": 1, "taken": "99.0.0"}),
        json!(null),
    ];

    for text in damaged {
        host.record(&text);
        assert_eq!(host.run().await.agent.version, INSTALLED, "{text}");
        host.stop().await;
    }
}

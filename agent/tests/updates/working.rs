//! A signed build that works: here the agent itself, released as another version.

use std::fs;

use crate::host::{Host, INSTALLED, failure, sha256};
use crate::programs;

#[tokio::test]
async fn a_build_that_works_takes_the_place_of_the_one_before() {
    let mut host = Host::start().await;
    let (pid, program) = (host.pid(), programs::agent());

    let auth = host.update("99.0.0", &program).await;

    assert_eq!((auth.agent.version.as_str(), failure(&auth)), ("99.0.0", None));
    assert_eq!((host.pid(), host.children()), (pid, Vec::new()), "the same process");
    assert_eq!(fs::read_to_string(format!("/proc/{pid}/comm")).unwrap(), "signalbox-agent\n");
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(arguments.starts_with(env!("CARGO_BIN_EXE_signalbox-agent").as_bytes()), "as it was started");
    assert_eq!(host.kept(), [sha256(&program).as_str(), "state.json"]);
    for version in ["98.9.9", "99.0.0", "99.0.0-rc.1", INSTALLED] {
        let older = host.genuine(version, &program);
        assert_eq!(host.offer(&older).await, Err("not_newer".to_owned()), "{version}");
    }

    // A newer one takes its place in turn, and nothing of it is left.
    let newer = [program.as_slice(), b"newer"].concat();
    let auth = host.update("99.1.0-rc.1", &newer).await;
    assert_eq!((auth.agent.version.as_str(), host.pid()), ("99.1.0-rc.1", pid));
    assert_eq!(host.kept(), [sha256(&newer).as_str(), "state.json"]);

    // The installed program finds it again.
    for _ in 0..4 {
        let auth = host.restart().await;
        assert_eq!(auth.agent.version, "99.1.0-rc.1");
    }
}

#[tokio::test]
async fn the_installed_program_runs_where_a_build_is_no_longer_genuine() {
    let mut host = Host::start().await;
    let program = programs::agent();
    host.update("99.0.0", &program).await;
    let build = host.updates().join(sha256(&program));
    let record = fs::read_to_string(host.updates().join("state.json")).unwrap();
    let pinned = fs::read_to_string(host.path("release_signers")).unwrap();
    let eve = fs::read_to_string(host.keygen.path("eve.pub")).unwrap();
    let expect = async |host: &mut Host, version: &str, why: &str| {
        let auth = host.restart().await;
        assert_eq!(auth.agent.version, version, "{why}");
        let log = host.log();
        assert!(version != INSTALLED || log.contains(why), "{why} in {log}");
    };

    host.pin(&format!("eve {eve}"));
    expect(&mut host, INSTALLED, "not signed by a key in this agent's release_signers").await;
    host.pin(&pinned);
    expect(&mut host, "99.0.0", "the key is back").await;

    host.decide("updates = \"off\"\n");
    expect(&mut host, INSTALLED, "the policy's `updates` is off").await;
    host.decide("updates = \"signed\"\n");
    expect(&mut host, "99.0.0", "updates are on again").await;

    let mut altered = program.clone();
    *altered.last_mut().unwrap() ^= 1;
    fs::write(&build, &altered).unwrap_err();
    fs::remove_file(&build).unwrap();
    fs::write(&build, &altered).unwrap();
    expect(&mut host, INSTALLED, "it is not the program that was signed").await;
    fs::write(&build, &program[1..]).unwrap();
    expect(&mut host, INSTALLED, "it has another length than the release says").await;
    fs::remove_file(&build).unwrap();
    expect(&mut host, INSTALLED, "its file cannot be used").await;
    // What is no file is not followed to one.
    std::os::unix::fs::symlink("/bin/true", &build).unwrap();
    expect(&mut host, INSTALLED, "its file cannot be used").await;

    // The service offers it again.
    let auth = host.update("99.0.0", &program).await;
    assert_eq!(auth.agent.version, "99.0.0");
    host.stop().await;
    fs::write(host.updates().join("state.json"), &record[..record.len() / 2]).unwrap();
    let auth = host.run().await;
    assert_eq!(auth.agent.version, INSTALLED);
    assert!(host.log().contains("the record of updates cannot be read"), "{}", host.log());
}

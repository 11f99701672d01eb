//! Signed builds that do not work: the one before is back, and says so.

use std::fs;

use serde_json::json;
use signalbox_protocol::close;

use crate::host::{Host, INSTALLED, failure, sha256};
use crate::programs;

/// Offers a build, and expects that the agent comes back from it.
async fn expect_return(host: &mut Host, program: &[u8], expected: &str) {
    let pid = host.pid();
    let offer = host.genuine("99.0.0", program);
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    host.disconnected().await;
    // Until the build was given up, nobody is heard.
    let auth = host.connected().await;

    assert_eq!((auth.agent.version.as_str(), host.pid()), (INSTALLED, pid));
    let failed = failure(&auth).unwrap();
    assert_eq!(failed.version, "99.0.0");
    assert!(failed.reason.contains(expected), "{failed:?}");
    assert_eq!(host.offer(&offer).await, Err("failed_before".to_owned()));
    assert_eq!(host.kept(), ["state.json"]);
    assert_eq!(host.children(), Vec::<u32>::new());

    let auth = host.restart().await;
    assert_eq!((auth.agent.version.as_str(), failure(&auth)), (INSTALLED, Some(failed)));
    assert_eq!(host.offer(&offer).await, Err("failed_before".to_owned()));
}

#[tokio::test]
async fn the_agent_comes_back_from_a_build_that_ends() {
    let mut host = Host::start().await;

    expect_return(&mut host, &programs::exits(), "it ended with the exit code 0").await;

    // Another build is not held back by it.
    let other = host.genuine("99.0.1", &programs::no_program());
    assert_eq!(host.offer(&other).await, Ok("99.0.1".to_owned()));
}

#[tokio::test]
async fn the_agent_comes_back_from_a_build_that_cannot_be_executed() {
    let mut host = Host::start().await;

    expect_return(&mut host, &programs::no_program(), "it cannot be executed").await;
}

#[tokio::test]
async fn the_agent_comes_back_from_a_build_that_hangs() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    // Perhaps the service was away twice.
    let program = programs::hangs();
    let failed = json!({"version": "99.0.0", "sha256": sha256(&program), "reason": "before", "tries": 2});
    fs::create_dir_all(host.updates()).unwrap();
    host.record(&json!({"v": 1, "failed": [failed]}));
    host.run().await;

    expect_return(&mut host, &program, "it did not connect within 60 s").await;
}

/// The build is the agent itself, and the service hangs up on it until its time is over. It may be tried again.
#[tokio::test]
async fn the_agent_comes_back_from_a_build_that_cannot_connect() {
    let mut host = Host::start().await;
    let pid = host.pid();
    let offer = host.genuine("99.0.0", &programs::agent());
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    host.service.hang_up(true);
    host.disconnected().await;
    crate::host::eventually("a trial", || (!host.children().is_empty()).then_some(())).await;
    crate::host::eventually("the end of the trial", || host.children().is_empty().then_some(())).await;
    host.service.hang_up(false);
    let auth = host.connected().await;

    assert_eq!((auth.agent.version.as_str(), host.pid(), failure(&auth)), (INSTALLED, pid, None));
    let tried = |host: &Host| host.read_record()["failed"][0].clone();
    assert_eq!(
        (&tried(&host)["tries"], &tried(&host)["reason"]),
        (&json!(1), &json!("it did not connect within 60 s"))
    );

    // The service refuses its key, and then takes it.
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    host.service.refuse_next(close::UNAUTHORIZED);
    host.disconnected().await;
    assert_eq!(host.connected().await.agent.version, INSTALLED);
    assert_eq!((&tried(&host)["tries"], &tried(&host)["reason"]), (&json!(2), &json!("it ended with the exit code 3")));
    assert_eq!(host.update("99.0.0", &programs::agent()).await.agent.version, "99.0.0");
    assert_eq!(host.read_record()["failed"], json!([]));
}

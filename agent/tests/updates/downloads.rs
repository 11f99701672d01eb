//! A genuine release whose program does not arrive as it was signed.

use std::sync::Arc;

use crate::host::{Host, INSTALLED};
use crate::offering::Sending;
use crate::programs;

#[tokio::test]
async fn a_program_that_is_not_the_signed_one_is_not_kept() {
    let mut host = Host::start().await;
    let pid = host.pid();
    let genuine = programs::exits();
    let offer = host.genuine("99.0.0", &genuine);
    let mut altered = genuine.clone();
    *altered.last_mut().unwrap() ^= 1;
    let longer = [genuine.as_slice(), b"x"].concat();
    let shared = |bytes: &[u8]| Arc::new(bytes.to_vec());
    let cases = [
        (Sending::Whole(shared(&altered)), "its SHA-256 is another one"),
        (Sending::Whole(shared(&genuine[1..])), "another length"),
        (Sending::Whole(shared(&longer)), "another length"),
        (Sending::Cut(shared(&genuine)), "the download broke"),
        (Sending::Endless(shared(&genuine)), "another length"),
        (Sending::Nothing, "404"),
    ];

    for (sending, expected) in cases {
        host.service.send_programs_as(sending);
        assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()), "{expected}");
        let event = host.event().await;
        assert_eq!(event.fields["version"], "99.0.0");
        let reason = event.fields["reason"].as_str().unwrap();
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(host.kept(), Vec::<String>::new(), "{expected}");
    }

    let info = host.request("agent.info", serde_json::Value::Null).await.unwrap();
    assert_eq!((info["version"].as_str(), host.pid()), (Some(INSTALLED), pid));
    assert_eq!(host.service.fetched(), 6);
}

#[tokio::test]
async fn while_one_build_is_fetched_another_is_refused() {
    let mut host = Host::with("commands = \"on\"\n").await;
    let other = host.signed(&host.release("99.1.0", b"another"), "release");
    let offer = host.genuine("99.0.0", &programs::exits());
    // It waits for this command with a build that it has.
    let command = crate::trials::command(1, "sleep 600");
    host.send(&command).await;

    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()), "the same again");
    assert_eq!(host.offer(&other).await, Err("busy".to_owned()));

    assert!(host.service.fetched() <= 1);
}

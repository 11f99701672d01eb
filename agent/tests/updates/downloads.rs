//! A genuine release whose program does not arrive as it was signed.

use std::sync::Arc;

use crate::host::{Host, INSTALLED};
use crate::offering::Sending;
use crate::programs;

#[tokio::test]
async fn a_program_that_is_not_the_signed_one_is_not_kept() {
    let mut host = Host::start().await;
    let pid = host.pid();
    type Spoil = fn(Vec<u8>) -> Sending;
    let altered: Spoil = |mut bytes| {
        *bytes.last_mut().unwrap() ^= 1;
        Sending::Whole(Arc::new(bytes))
    };
    let cases: [(Spoil, &str); 6] = [
        (altered, "its SHA-256 is another one"),
        (|bytes| Sending::Whole(Arc::new(bytes[1..].to_vec())), "another length"),
        (|bytes| Sending::Whole(Arc::new([&bytes, b"x".as_slice()].concat())), "another length"),
        (|bytes| Sending::Cut(Arc::new(bytes)), "the download broke"),
        (|bytes| Sending::Endless(Arc::new(bytes)), "another length"),
        (|_| Sending::Nothing, "404"),
    ];

    for (number, (spoil, expected)) in (0_u8..).zip(cases) {
        let genuine = [programs::exits(), vec![number]].concat();
        let offer = host.genuine("99.0.0", &genuine);
        host.service.send_programs_as(spoil(genuine));
        assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()), "{expected}");
        let event = host.event().await;
        assert_eq!(event.fields["version"], "99.0.0");
        let reason = event.fields["reason"].as_str().unwrap();
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(host.kept(), Vec::<String>::new(), "{expected}");
        assert_eq!(host.offer(&offer).await, Err("busy".to_owned()), "the same is not fetched again soon");
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

#[tokio::test]
async fn a_service_that_is_too_busy_to_send_a_program_is_asked_again() {
    let mut host = Host::start().await;
    host.service.be_busy(2);

    let auth = host.update("99.0.0", &programs::agent()).await;

    assert_eq!((auth.agent.version.as_str(), host.service.fetched()), ("99.0.0", 3));
}

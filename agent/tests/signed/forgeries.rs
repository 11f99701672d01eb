//! What was signed is altered, mixed, or meant for something else.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Execute;
use signalbox_protocol::signed::{Signature, Signed};
use signalbox_signing::payload::input_hash;

use crate::host::{Host, Outcome, refusal};
use crate::keygen::{armored, blob};

impl Host {
    async fn expect_refusal(&mut self, signed: Signed) {
        let order = self.order(Some(signed));
        let outcome = self.ask(order).await;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn no_byte_of_an_order_can_be_changed() {
    let mut host = Host::start().await;
    let payload = host.payload(&[]);
    let signed = host.sign(&payload, &["ada"]);
    let Signature::Sshsig { signature } = &signed.signatures[0] else { panic!("an SSH signature") };
    let bytes = blob(signature);

    for at in 0..payload.len() {
        for change in [1, 0x20, 0x80] {
            let mut altered = payload.clone();
            altered[at] ^= change;
            host.expect_refusal(Signed { payload: BASE64_STANDARD.encode(altered), ..signed.clone() }).await;
        }
        let shorter = BASE64_STANDARD.encode([&payload[..at], &payload[at + 1..]].concat());
        host.expect_refusal(Signed { payload: shorter, ..signed.clone() }).await;
    }
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 1 << (at % 8);
        let signatures = vec![Signature::Sshsig { signature: armored(&altered) }];
        host.expect_refusal(Signed { signatures, ..signed.clone() }).await;
    }
    assert_eq!(host.runs(), 0);

    // The order itself still stands: nothing of it was used up.
    let order = host.order(Some(signed));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    assert_eq!(host.runs(), 1);
    host.expect_tries(1_000);
}

#[tokio::test]
async fn what_is_asked_has_to_be_what_was_signed() {
    let mut host = Host::start().await;
    let signed = host.sign(&host.payload(&[]), &["ada"]);
    let order = host.order(Some(signed.clone()));
    let trace = host.trace();
    let others = [
        Execute { command: format!("{trace} "), ..order.clone() },
        Execute { command: format!("{trace}; id"), ..order.clone() },
        Execute { command: String::new(), ..order.clone() },
        Execute { stdin: Some("y\n".to_owned()), ..order.clone() },
        Execute { timeout_seconds: 61, ..order.clone() },
        Execute { signed: None, ..order.clone() },
        Execute { signed: Some(Signed { signatures: Vec::new(), ..signed.clone() }), ..order.clone() },
    ];
    for other in others {
        assert_eq!(host.ask(other).await, refusal("not_signed"));
    }
    for (changes, reason) in [
        (("servers", json!(["web-2"])), "wrong_server"),
        (("servers", json!(["web-11", "Web-1", "web-1\u{0}"])), "wrong_server"),
        (("v", json!(2)), "not_signed"),
        (("repeat", json!("daily")), "not_signed"),
        (("command", json!("true")), "not_signed"),
    ] {
        let signed = host.sign(&host.payload(&[changes]), &["ada"]);
        let order = host.order(Some(signed));
        assert_eq!(host.ask(order).await, refusal(reason));
    }
    let stranger = host.sign(&host.payload(&[]), &["eve"]);
    let order = host.order(Some(stranger));
    assert_eq!(host.ask(order).await, refusal("unknown_signer"));
    assert_eq!(host.runs(), 0);

    let order = host.order(Some(signed));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    host.expect_tries(14);
}

#[tokio::test]
async fn an_empty_input_is_the_same_as_none() {
    let mut host = Host::start().await;
    // Fails if it can tell them apart.
    let command = format!("{} && test ! -p /dev/stdin", host.trace());
    let empty = json!(input_hash(""));

    for (hash, input) in [(Value::Null, Some("")), (empty.clone(), None), (empty, Some(""))] {
        let payload = host.payload(&[("command", json!(command)), ("stdin_sha256", hash)]);
        let signed = host.sign(&payload, &["ada"]);
        let stdin = input.map(str::to_owned);
        let order = Execute { command: command.clone(), stdin, ..host.order(Some(signed)) };
        assert_eq!(host.ask(order).await, Outcome::Ran);
    }

    assert_eq!(host.runs(), 3);
    host.expect_tries(3);
}

#[tokio::test]
async fn an_order_holds_only_for_its_time() {
    let mut host = Host::start().await;
    let now = Timestamp::now();
    let hours = |hours: i64| json!(now.plus_millis(hours * 3_600_000));
    let windows = [(-2, -1), (1, 2), (-48, -47), (20, 44), (-24, 24), (-1, 24), (1, -1), (0, 0), (-100_000, 100_000)];

    for (not_before, expires_at) in windows {
        let window = [("not_before", hours(not_before)), ("expires_at", hours(expires_at))];
        let signed = host.sign(&host.payload(&window), &["ada"]);
        let order = host.order(Some(signed));
        let is_window = (1..=24).contains(&(expires_at - not_before));
        let reason = if is_window { "expired" } else { "not_signed" };
        assert_eq!(host.ask(order).await, refusal(reason), "{not_before} to {expires_at}");
    }
    assert_eq!(host.runs(), 0);
    host.expect_tries(9);
}

#[tokio::test]
async fn two_people_have_to_sign_the_same_bytes() {
    let mut host = Host::with("commands = \"signed\"\napprovals = 2\n").await;
    let (one, other) = (host.payload(&[]), host.payload(&[]));
    let by = |host: &Host, payload: &[u8], keys: &[&str]| host.sign(payload, keys).signatures;
    let mixed = [by(&host, &one, &["ada"]), by(&host, &other, &["ben"])].concat();

    for payload in [&one, &other] {
        let signed = Signed { payload: BASE64_STANDARD.encode(payload), signatures: mixed.clone() };
        let order = host.order(Some(signed));
        assert_eq!(host.ask(order).await, refusal("not_enough_approvals"));
    }
    for keys in [&["ada"][..], &["ben"], &["ada", "ada"], &["ada", "ada-2"], &["ada", "eve"]] {
        let signed = host.sign(&one, keys);
        let order = host.order(Some(signed));
        assert_eq!(host.ask(order).await, refusal("not_enough_approvals"), "{keys:?}");
    }
    assert_eq!(host.runs(), 0);

    let signed = host.sign(&one, &["eve", "ben", "ada-2"]);
    let order = host.order(Some(signed));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    host.expect_tries(8);
}

#[tokio::test]
async fn a_signature_is_for_one_kind_of_thing() {
    let mut host = Host::start().await;
    let command = host.sign(&host.payload(&[]), &["ada"]);
    let as_terminal = [("kind", json!("terminal")), ("command", Value::Null)];
    let terminal = host.sign(&host.payload(&as_terminal), &["ada"]);
    let as_container = [("kind", json!("container")), ("command", Value::Null), ("timeout_seconds", Value::Null)];
    let as_container = [&as_container[..], &[("action", json!("restart web"))]].concat();
    let container = host.sign(&host.payload(&as_container), &["ada"]);

    for signed in [None, Some(command), Some(container.clone())] {
        assert_eq!(host.open_terminal(signed).await, refusal("not_signed"));
    }
    let order = host.order(Some(terminal.clone()));
    assert_eq!(host.ask(order).await, refusal("not_signed"));
    for (verb, name, signed) in [
        ("restart", "web", None),
        ("restart", "web", Some(terminal.clone())),
        ("stop", "web", Some(container.clone())),
        ("restart", "db", Some(container.clone())),
    ] {
        let error = host.change_container(verb, name, signed).await;
        assert_eq!((error.code.as_str(), error.reason.as_deref()), ("agent_refused", Some("not_signed")));
    }

    host.expect_each_once(terminal, container).await;
    host.expect_tries(12);
}

#[tokio::test]
async fn the_allow_list_runs_words_and_no_shell() {
    let mut host = Host::with("commands = \"signed\"\nallow = [\"echo fixed *\", \"true\"]\n").await;
    let trace = host.trace();
    let run = |host: &mut Host, command: &str| Execute { command: command.to_owned(), ..host.order(None) };

    for command in ["true", " true ", "echo fixed $(id)", "echo fixed ;id", "echo fixed `id`"] {
        let order = run(&mut host, command);
        assert_eq!(host.ask(order).await, Outcome::Ran, "{command}");
    }
    let with_empty_input = Execute { stdin: Some(String::new()), ..run(&mut host, "true") };
    assert_eq!(host.ask(with_empty_input).await, Outcome::Ran);
    let with_input = Execute { stdin: Some("x".to_owned()), ..run(&mut host, "true") };
    assert_eq!(host.ask(with_input).await, refusal("not_signed"));
    let others = [
        format!("true; {trace}"),
        format!("true\n{trace}"),
        format!("echo fixed 1 && {trace}"),
        format!("echo fixed >> {}", host.path("ran").display()),
        "echo fixed -n".to_owned(),
        "echo other 1".to_owned(),
        "sh -c true".to_owned(),
    ];
    for command in others {
        let order = run(&mut host, &command);
        assert_eq!(host.ask(order).await, refusal("not_signed"), "{command}");
    }
    assert_eq!(host.runs(), 0);
    host.expect_tries(13);
}

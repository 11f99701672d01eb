//! What passkeys have signed: altered, for another service, without its person, and sent again.

use std::fs::OpenOptions;
use std::io::Write;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use rustix::process::Signal;
use serde_json::{Value, json};
use signalbox_protocol::signed::{Signature, Signed};

use crate::host::{Host, Outcome, refusal};
use crate::passkey::{HERE, LIES, Passkey, Said, TRUTH, altered, signature_of};

impl Host {
    /// With more signers.
    async fn with_signers(policy: &str, lines: &[String]) -> Self {
        let mut host = Self::stopped(policy).await;
        let mut file = OpenOptions::new().append(true).open(host.path("allowed_signers")).unwrap();
        file.write_all(lines.concat().as_bytes()).unwrap();
        host.run().await;
        host
    }

    /// What becomes of the command that leaves a trace, with this payload and these signatures.
    async fn outcome(&mut self, payload: &[u8], signatures: &[Signature]) -> Outcome {
        let signed = Signed { payload: BASE64_STANDARD.encode(payload), signatures: signatures.to_vec() };
        let order = self.order(Some(signed));
        self.ask(order).await
    }

    fn ssh(&self, payload: &[u8], key: &str) -> Signature {
        self.sign(payload, &[key]).signatures.remove(0)
    }
}

#[tokio::test]
async fn no_bit_of_an_assertion_can_be_changed() {
    let keys = Passkey::of_each_kind();
    let mut host = Host::with_signers("commands = \"signed\"\n", &keys.each_ref().map(|key| key.line("cleo"))).await;

    for (runs, key) in keys.iter().enumerate() {
        let payload = host.payload(&[]);
        let given = key.assert(&payload, &TRUTH);
        for (part, bit, altered) in altered(&given) {
            let outcome = host.outcome(&payload, &[signature_of(&altered)]).await;
            assert_eq!(outcome, refusal("unknown_signer"), "part {part}, bit {bit}");
        }
        for at in 0..payload.len() {
            let mut altered = payload.clone();
            altered[at] ^= 1 << (at % 8);
            let outcome = host.outcome(&altered, &[signature_of(&given)]).await;
            assert!(matches!(outcome, Outcome::Refused(_)), "byte {at} of the payload");
        }
        assert_eq!(host.runs(), runs);

        // The assertion itself still stands: nothing of it was used up.
        assert_eq!(host.outcome(&payload, &[signature_of(&given)]).await, Outcome::Ran);
        assert_eq!(host.runs(), runs + 1);
    }
    host.expect_tries(7_800);
}

#[tokio::test]
async fn an_assertion_counts_for_its_payload_its_service_and_a_person_who_was_verified() {
    let keys = Passkey::of_each_kind();
    let mut host = Host::with_signers("commands = \"signed\"\n", &keys.each_ref().map(|key| key.line("cleo"))).await;

    for (runs, key) in keys.iter().enumerate() {
        let (payload, other) = (host.payload(&[]), host.payload(&[]));
        let assertion = key.assert(&payload, &TRUTH);
        let about_other = key.assert(&other, &TRUTH);
        let elsewhere = key.assert(&payload, &Said { host: "evil.example.org", ..TRUTH });
        let mut without_person = key.assert(&payload, &Said { flags: 0b001, ..TRUTH });
        let mut refused: Vec<Signature> = LIES.iter().map(|said| signature_of(&key.assert(&payload, said))).collect();
        refused.push(signature_of(&about_other));
        refused.push(Passkey::es256().signature(&payload));
        // Parts of one assertion with those of another one.
        for part in 0..3 {
            for from in [&about_other, &elsewhere] {
                let mut mixed = assertion.clone();
                mixed[part] = from[part].clone();
                if mixed != assertion {
                    refused.push(signature_of(&mixed));
                }
            }
        }
        // Said to have been verified after the authenticator has signed that it was not.
        without_person[1][32] |= 0b100;
        refused.push(signature_of(&without_person));
        // In other forms.
        let [client_data, data, signature] = assertion.clone().map(|bytes| BASE64_URL_SAFE_NO_PAD.encode(bytes));
        let of = |client_data: &str, data: &str, signature: &str| Signature::Webauthn {
            client_data_json: client_data.to_owned(),
            authenticator_data: data.to_owned(),
            signature: signature.to_owned(),
        };
        refused.extend([
            of("", "", ""),
            of(&client_data, &data, ""),
            of(&client_data, "", &signature),
            of("", &data, &signature),
            of(&format!("{client_data}="), &data, &signature),
            of(&data, &client_data, &signature),
            Signature::Sshsig { signature: signature.clone() },
        ]);

        for (number, signature) in refused.iter().enumerate() {
            let outcome = host.outcome(&payload, std::slice::from_ref(signature)).await;
            assert_eq!(outcome, refusal("unknown_signer"), "{number}: {signature:?}");
        }
        for some in refused.chunks(8) {
            assert_eq!(host.outcome(&payload, some).await, refusal("unknown_signer"), "several");
        }
        assert_eq!(host.outcome(&other, &[signature_of(&assertion)]).await, refusal("unknown_signer"));
        assert_eq!(host.outcome(&payload, &[]).await, refusal("not_signed"));
        assert_eq!(host.runs(), runs);

        assert_eq!(host.outcome(&payload, &[signature_of(&assertion)]).await, Outcome::Ran);
    }
    host.expect_tries(99);
}

#[tokio::test]
async fn the_file_of_signers_says_for_which_service_and_until_when_a_passkey_counts() {
    let [key, wrong, over, git] = [(); 4].map(|()| Passkey::es256());
    let lines = [
        key.line("cleo"),
        wrong.line("cleo").replace(HERE, "other.example.org"),
        over.line("cleo").replace("cleo ", "cleo valid-before=\"20200101Z\" "),
        git.line("cleo").replace("cleo ", "cleo namespaces=\"git\" "),
    ];
    let mut host = Host::with_signers("commands = \"signed\"\n", &lines).await;
    let payload = host.payload(&[]);

    for key in [&wrong, &over, &git] {
        assert_eq!(host.outcome(&payload, &[key.signature(&payload)]).await, refusal("unknown_signer"));
    }
    for (changes, reason) in [
        (("servers", json!(["web-2"])), "wrong_server"),
        (("command", json!("true")), "not_signed"),
        (("kind", json!("terminal")), "not_signed"),
        (("expires_at", json!("2020-01-01T00:00:00Z")), "not_signed"),
    ] {
        let payload = host.payload(&[changes]);
        assert_eq!(host.outcome(&payload, &[key.signature(&payload)]).await, refusal(reason), "{reason}");
    }
    let past = [("not_before", json!("2020-01-01T00:00:00Z")), ("expires_at", json!("2020-01-01T01:00:00Z"))];
    let past = host.payload(&past);
    assert_eq!(host.outcome(&past, &[key.signature(&past)]).await, refusal("expired"));
    assert_eq!(host.runs(), 0);

    assert_eq!(host.outcome(&payload, &[key.signature(&payload)]).await, Outcome::Ran);
    host.expect_tries(9);
}

#[tokio::test]
async fn what_a_passkey_signed_runs_once_also_with_another_assertion_and_after_restarts() {
    let keys = Passkey::of_each_kind();
    let mut host = Host::with_signers("commands = \"signed\"\n", &keys.each_ref().map(|key| key.line("ada"))).await;
    let mut seen = Vec::new();
    for key in &keys {
        let payload = host.payload(&[]);
        let assertion = key.signature(&payload);
        assert_eq!(host.outcome(&payload, std::slice::from_ref(&assertion)).await, Outcome::Ran);
        seen.push((payload, assertion));
    }

    for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
        for (payload, assertion) in &seen {
            let by_others = [keys[0].signature(payload), keys[1].signature(payload), host.ssh(payload, "ada")];
            for signature in by_others.iter().chain([assertion]) {
                let outcome = host.outcome(payload, std::slice::from_ref(signature)).await;
                assert_eq!(outcome, refusal("replayed"), "{signature:?}");
            }
            assert_eq!(host.outcome(payload, &by_others).await, refusal("replayed"));
        }
        host.restart(signal).await;
    }

    assert_eq!(host.runs(), 3);
    host.expect_tries(48);
}

#[tokio::test]
async fn a_passkey_and_an_ssh_key_of_one_person_count_once() {
    let [ada, cleo] = [Passkey::es256(), Passkey::eddsa()];
    let lines = [ada.line("ada"), cleo.line("cleo")];
    let mut host = Host::with_signers("commands = \"signed\"\napprovals = 2\n", &lines).await;
    let (payload, other) = (host.payload(&[]), host.payload(&[]));
    let too_few = [
        vec![ada.signature(&payload)],
        vec![ada.signature(&payload), ada.signature(&payload)],
        vec![ada.signature(&payload), host.ssh(&payload, "ada")],
        vec![ada.signature(&payload), host.ssh(&payload, "ada-2"), host.ssh(&payload, "eve")],
        vec![ada.signature(&payload), cleo.signature(&other)],
        vec![ada.signature(&payload), host.ssh(&other, "ben")],
        vec![ada.signature(&payload), signature_of(&cleo.assert(&payload, &Said { flags: 0b001, ..TRUTH }))],
    ];

    for (number, signatures) in too_few.iter().enumerate() {
        assert_eq!(host.outcome(&payload, signatures).await, refusal("not_enough_approvals"), "{number}");
    }
    assert_eq!(host.runs(), 0);
    let both = [ada.signature(&payload), cleo.signature(&payload)];
    assert_eq!(host.outcome(&payload, &both).await, Outcome::Ran);
    let mixed = [host.ssh(&other, "ben"), ada.signature(&other)];
    assert_eq!(host.outcome(&other, &mixed).await, Outcome::Ran);
    assert_eq!(host.outcome(&payload, &both).await, refusal("replayed"));
    host.expect_tries(10);
}

#[tokio::test]
async fn a_passkeys_signature_is_for_one_kind_of_thing() {
    let key = Passkey::eddsa();
    let policy = "commands = \"signed\"\nterminal = \"signed\"\ndocker = \"signed\"\n";
    let mut host = Host::with_signers(policy, &[key.line("cleo")]).await;
    let signed =
        |payload: &[u8]| Signed { payload: BASE64_STANDARD.encode(payload), signatures: vec![key.signature(payload)] };
    let command = signed(&host.payload(&[]));
    let terminal = signed(&host.payload(&[("kind", json!("terminal")), ("command", Value::Null)]));
    let container = [("kind", json!("container")), ("command", Value::Null), ("timeout_seconds", Value::Null)];
    let container = [&container[..], &[("action", json!("restart web"))]].concat();
    let container = signed(&host.payload(&container));

    for other in [&command, &container] {
        assert_eq!(host.open_terminal(Some(other.clone())).await, refusal("not_signed"));
    }
    for other in [&terminal, &container] {
        let order = host.order(Some(other.clone()));
        assert_eq!(host.ask(order).await, refusal("not_signed"));
    }
    for (verb, other) in [("restart", &command), ("restart", &terminal), ("stop", &container)] {
        let error = host.change_container(verb, "web", Some(other.clone())).await;
        assert_eq!((error.code.as_str(), error.reason.as_deref()), ("agent_refused", Some("not_signed")));
    }
    assert_eq!(host.runs(), 0);

    let order = host.order(Some(command));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    host.expect_each_once(terminal, container).await;
    host.expect_tries(12);
}

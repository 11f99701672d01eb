//! What a signed payload permits, and what it does not; passkeys; and parsers that read anything.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/passkey.rs"]
mod passkey;
mod support;

use passkey::{Assertion, LIES, Passkey, TRUTH, altered, signature_of};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signature;
use signalbox_signing::payload::input_hash;
use signalbox_signing::{Asked, NAMESPACE, Payload, Reason, Signers, Terms, fuzzing, signers_of};
use support::{Keygen, PAYLOAD, now, signed};

const ASKED: Asked<'_> = Asked::Command { command: "systemctl restart nginx", stdin: None, timeout_seconds: 60 };

fn sshsig(signature: String) -> Signature {
    Signature::Sshsig { signature }
}

/// The payload with these fields, which replace those of [`PAYLOAD`]; null removes one.
fn payload(changes: &[(&str, Value)]) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(PAYLOAD).unwrap();
    for (name, change) in changes {
        match change {
            Value::Null => _ = value.as_object_mut().unwrap().remove(*name),
            other => value[*name] = other.clone(),
        }
    }
    value.to_string().into_bytes()
}

/// Two people and a stranger with their keys.
struct Cast {
    keygen: Keygen,
    signers: Signers,
}

impl Cast {
    fn new() -> Self {
        let keygen = Keygen::new();
        let ada = [keygen.generate("ada", "ed25519", ""), keygen.generate("ada-2", "ecdsa", "256")];
        let ben = keygen.generate("ben", "ed25519", "");
        keygen.generate("eve", "ed25519", "");
        let signers = Signers::parse(&format!("ada {}\nada {}\nben {ben}\n", ada[0], ada[1])).unwrap();
        Self { keygen, signers }
    }

    fn permit(&self, payload: &[u8], keys: &[&str], approvals: usize, asked: Asked<'_>) -> Result<(), Reason> {
        self.permit_at(payload, keys, approvals, asked, now())
    }

    fn permit_at(
        &self,
        payload: &[u8],
        keys: &[&str],
        approvals: usize,
        asked: Asked<'_>,
        time: Timestamp,
    ) -> Result<(), Reason> {
        let signatures = keys.iter().map(|key| sshsig(self.keygen.sign(key, NAMESPACE, payload)));
        let signed = signed(payload, signatures.collect());
        let terms = Terms { name: "web-1", signers: &self.signers, approvals };
        let permitted = terms.permit(&signed, asked, time);
        permitted.map(|_| ()).map_err(|refusal| {
            let in_words = Reason::in_words(&refusal.detail);
            assert_eq!(in_words.unwrap_or(Reason::NotSigned), refusal.reason, "{}", refusal.detail);
            refusal.reason
        })
    }
}

#[test]
fn different_people_have_to_sign() {
    let cast = Cast::new();
    let permit = |keys: &[&str], approvals| cast.permit(PAYLOAD, keys, approvals, ASKED);

    assert_eq!(permit(&["ada"], 1), Ok(()));
    assert_eq!(permit(&["ada", "ben"], 2), Ok(()));
    assert_eq!(permit(&["eve", "ben"], 1), Ok(()));
    assert_eq!(permit(&[], 1), Err(Reason::NotSigned));
    assert_eq!(permit(&["eve"], 1), Err(Reason::UnknownSigner));
    for keys in [&["ada"][..], &["ada", "ada"], &["ada", "ada-2"], &["ada", "eve"]] {
        assert_eq!(permit(keys, 2), Err(Reason::NotEnoughApprovals), "{keys:?}");
    }
}

#[test]
fn signatures_of_different_payloads_do_not_add_up() {
    let cast = Cast::new();
    let other = payload(&[("nonce", json!("ffffffffffffffffffffffffffffffff"))]);
    let signatures =
        vec![sshsig(cast.keygen.sign("ada", NAMESPACE, PAYLOAD)), sshsig(cast.keygen.sign("ben", NAMESPACE, &other))];
    let terms = Terms { name: "web-1", signers: &cast.signers, approvals: 2 };

    for bytes in [PAYLOAD, &other] {
        let refusal = terms.permit(&signed(bytes, signatures.clone()), ASKED, now()).unwrap_err();
        assert_eq!(refusal.reason, Reason::NotEnoughApprovals);
    }
}

#[test]
fn a_payload_permits_what_it_says_and_nothing_else() {
    let cast = Cast::new();
    let permit = |changes: &[(&str, Value)], asked| cast.permit(&payload(changes), &["ada"], 1, asked);
    let command = |command, stdin, timeout_seconds| Asked::Command { command, stdin, timeout_seconds };
    let restart = "systemctl restart nginx";
    let container = [("kind", json!("container")), ("command", Value::Null), ("timeout_seconds", json!(5))];
    let container = [&container[..], &[("action", json!("restart web"))]].concat();
    let terminal = [("kind", json!("terminal")), ("command", Value::Null)];
    let action = |action, timeout_seconds| Asked::Container { action, timeout_seconds };
    let input = [("stdin_sha256", json!(input_hash("y\n")))];
    let empty_input = [("stdin_sha256", json!(input_hash("")))];

    assert_eq!(permit(&[], ASKED), Ok(()));
    assert_eq!(permit(&input, command(restart, Some("y\n"), 60)), Ok(()));
    for stdin in [None, Some("")] {
        assert_eq!(permit(&[], command(restart, stdin, 60)), Ok(()));
        assert_eq!(permit(&empty_input, command(restart, stdin, 60)), Ok(()));
    }
    assert_eq!(permit(&terminal, Asked::Terminal), Ok(()));
    assert_eq!(permit(&container, action("restart web", Some(5))), Ok(()));
    let refused = [
        permit(&[], command("systemctl restart nginx ", None, 60)),
        permit(&[], command("systemctl restart nginX", None, 60)),
        permit(&[], command(restart, None, 61)),
        permit(&[], command(restart, Some("y\n"), 60)),
        permit(&empty_input, command(restart, Some("y\n"), 60)),
        permit(&input, command(restart, None, 60)),
        permit(&input, command(restart, Some(""), 60)),
        permit(&input, command(restart, Some("y"), 60)),
        permit(&[], Asked::Terminal),
        permit(&[], action("restart web", Some(5))),
        permit(&terminal, ASKED),
        permit(&terminal, action("restart web", None)),
        permit(&container, ASKED),
        permit(&container, Asked::Terminal),
        permit(&container, action("restart db", Some(5))),
        permit(&container, action("stop web", Some(5))),
        permit(&container, action("restart web", None)),
        permit(&container, action("restart web", Some(6))),
        permit(&[("v", json!(2))], ASKED),
        permit(&[("repeat", json!("daily"))], ASKED),
    ];
    assert_eq!(refused, [Err(Reason::NotSigned); 20]);
    let sound = Payload::parse(PAYLOAD).unwrap();
    for other in [command(restart, None, 61), Asked::Terminal] {
        assert_eq!(Reason::in_words(&sound.difference(other).unwrap()), Some(Reason::NotSigned));
    }
    for servers in [json!(["web-2"]), json!(["web-1 "]), json!(["WEB-1"]), json!(["web-10", "web-"])] {
        assert_eq!(permit(&[("servers", servers.clone())], ASKED), Err(Reason::WrongServer), "{servers}");
    }
    assert_eq!(permit(&[("servers", json!(["db-1", "web-1"]))], ASKED), Ok(()));
}

#[test]
fn a_payload_holds_for_its_time() {
    let cast = Cast::new();
    let at = |time: &str| cast.permit_at(PAYLOAD, &["ada"], 1, ASKED, Timestamp::parse(time).unwrap());

    assert_eq!(at("2026-11-26T10:00:00Z"), Ok(()));
    assert_eq!(at("2026-11-26T10:04:59.999Z"), Ok(()));
    for time in ["2026-11-26T09:59:59.999Z", "2026-11-26T10:05:00Z", "1970-01-01T00:00:00Z", "9999-12-31T00:00:00Z"] {
        assert_eq!(at(time), Err(Reason::Expired), "{time}");
    }
}

fn is_by(signers: &Signers, payload: &[u8], given: &Assertion) -> bool {
    !signers_of(&signed(payload, vec![signature_of(given)]), payload, signers, now()).is_empty()
}

#[test]
fn a_passkey_signs_the_payload_for_its_service_by_a_verified_user() {
    let mut tries = 0;
    for key in Passkey::of_each_kind() {
        let signers_with = |key: &Passkey| Signers::parse(&key.line("ada")).unwrap();
        let (signers, given) = (signers_with(&key), key.assert(PAYLOAD, &TRUTH));
        assert!(is_by(&signers, PAYLOAD, &given));
        assert!(!LIES.iter().any(|said| is_by(&signers, PAYLOAD, &key.assert(PAYLOAD, said))));
        assert!(!is_by(&signers, PAYLOAD, &key.assert(b"{}", &TRUTH)));
        assert!(!is_by(&signers_with(&Passkey::es256()), PAYLOAD, &given));

        for (part, bit, altered) in altered(&given) {
            assert!(!is_by(&signers, PAYLOAD, &altered), "part {part}, bit {bit}");
            tries += 1;
        }
        for bit in 0..PAYLOAD.len() * 8 {
            let mut altered = PAYLOAD.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_by(&signers, &altered, &given), "bit {bit} of the payload");
            tries += 1;
        }
    }
    println!("{tries} tries: altered assertions");
    assert!(tries > 10_000, "{tries}");
}

proptest! {
    #[test]
    fn parsers_read_anything_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzing::signed(&bytes);
    }

    #[test]
    fn parsers_read_altered_texts_without_a_panic(at in 0_usize..2_000, with in any::<u8>()) {
        let texts = [
            PAYLOAD.to_vec(),
            support::armored(&support::string(PAYLOAD)).into_bytes(),
            b"ada,ben valid-before=\"20270101Z\",namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA= x".to_vec(),
            [&b"SSHSIG\0\0\0\x01"[..], &support::string(b"x"), &support::string(b"y")].concat(),
        ];
        for mut text in texts {
            let at = at % text.len();
            text[at] = with;
            fuzzing::signed(&text);
            fuzzing::signed(&text[..at]);
        }
    }
}

//! `signalbox audit verify --signatures`: orders that passkeys have signed.

use serde_json::{Value, json};
use signalbox::audit::Outcome;
use signalbox_protocol::signed::Signature;

use super::orders::{Log, asked, refused};
use crate::support::keygen::base64;
use crate::support::passkey::{Assertion, LIES, Passkey, TRUTH, altered, signature_of};

const STRANGER: &str = ": echo done: FORGED OR ALTERED: no signature is by a known signer";

fn signed(payload: &[u8], signatures: &[Signature]) -> Value {
    json!({ "payload": base64(payload), "signatures": signatures })
}

#[test]
fn who_signed_with_a_passkey_is_named_and_a_signature_that_is_not_theirs_is_found() {
    let [ada, cleo, stranger] = [Passkey::es256(), Passkey::eddsa(), Passkey::rs256()];
    let mut log = Log::with_signers(&[ada.line("ada"), cleo.line("cleo")].concat());
    let [first, second] = [(); 2].map(|()| Log::payload(&json!({})));
    let elsewhere = Log::payload(&json!({ "servers": ["web-2"] }));
    let mut add = |signed: Value, approvals, outcome: Outcome, ended: Value| {
        log.command(asked(&signed, approvals), outcome, ended);
    };
    let mut ran = |payload: &[u8], signature: Signature| add(signed(payload, &[signature]), 1, Outcome::Ok, json!({}));

    ran(&first, cleo.signature(&first));
    // The same payload with another assertion about it, which is another signature.
    ran(&first, ada.signature(&first));
    ran(&second, stranger.signature(&second));
    // Each with the signature of the other entry.
    ran(&second, cleo.signature(&first));
    ran(&first, cleo.signature(&second));
    ran(&elsewhere, cleo.signature(&elsewhere));
    let both = [ada.signature(&second), cleo.signature(&second)];
    let twice = [ada.signature(&second), ada.signature(&second)];
    add(signed(&second, &both), 2, Outcome::Ok, json!({}));
    add(signed(&second, &twice), 2, Outcome::Ok, json!({}));
    add(signed(&second, &both[..1]), 1, Outcome::Refused, refused("replayed"));
    add(signed(&second, &[stranger.signature(&second)]), 1, Outcome::Refused, refused("unknown_signer"));

    log.expect(
        6,
        &[
            ": echo done: signed by cleo for web-1",
            ": echo done: FORGED OR ALTERED: the signatures were used before, by entry 1",
            STRANGER,
            STRANGER,
            STRANGER,
            ": echo done: FORGED OR ALTERED: it was signed for web-2, and signers call the server web-1",
            ": echo done: signed by ada and cleo for web-1",
            ": echo done: FORGED OR ALTERED: 1 of the 2 people whom the server asks for have signed",
            ": echo done: signed by ada for web-1: refused by the agent (replayed)",
            ": echo done: no signature is by a known signer: refused by the agent (unknown_signer)",
        ],
    );
}

/// What is said of a log whose only order has this payload and this assertion.
fn said_of(log: &mut Log, payload: &[u8], assertion: &Assertion) -> (usize, String) {
    log.records.clear();
    log.command(asked(&signed(payload, &[signature_of(assertion)]), 1), Outcome::Ok, json!({}));
    let report = log.report(false);
    (report.wrong, report.lines.concat().split_once("web-1").unwrap().1.to_owned())
}

#[test]
fn no_bit_of_a_passkeys_signature_or_of_its_payload_can_be_changed_in_the_log() {
    let mut tries = 0;
    for key in Passkey::of_each_kind() {
        let mut log = Log::with_signers(&key.line("cleo"));
        let payload = Log::payload(&json!({}));
        let assertion = key.assert(&payload, &TRUTH);
        let genuine = (0, ": echo done: signed by cleo for web-1".to_owned());
        assert_eq!(said_of(&mut log, &payload, &assertion), genuine);

        let forged = (1, STRANGER.to_owned());
        for (part, bit, altered) in altered(&assertion) {
            assert_eq!(said_of(&mut log, &payload, &altered), forged, "part {part}, bit {bit}");
            tries += 1;
        }
        for bit in 0..payload.len() * 8 {
            let mut altered = payload.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let (wrong, said) = said_of(&mut log, &altered, &assertion);
            assert!(wrong == 1 && said.contains("FORGED OR ALTERED: "), "bit {bit} of the payload: {said}");
            tries += 1;
        }
        for said in &LIES {
            assert_eq!(said_of(&mut log, &payload, &key.assert(&payload, said)), forged, "{said:?}");
            tries += 1;
        }
        assert_eq!(said_of(&mut log, &payload, &assertion), genuine);
    }
    println!("{tries} tries: entries of the audit log");
    assert!(tries > 12_000, "{tries}");
}

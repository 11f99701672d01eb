//! Commands that a passkey has signed, from the API to the agent and to the audit log.

use serde_json::{Value, json};
use signalbox::audit::action;
use signalbox::audit::chain::Record;
use signalbox_protocol::signed::Signature;

use super::altered::{Log, detail};
use super::signed::{Signed, assert_refused};
use crate::support::eventually;
use crate::support::keygen::base64;
use crate::support::passkey::{Passkey, Said, TRUTH, signature_of};

fn of(payload: &[u8], signature: &Signature) -> Value {
    json!({ "payload": base64(payload), "signatures": [signature] })
}

fn payload(command: &str) -> Vec<u8> {
    Signed::payload(&json!({ "kind": "command", "command": command }))
}

const CLEO: &str = "signed by cleo@example.org for web-1";
const STRANGER: &str = "FORGED OR ALTERED: no signature is by a known signer";
const OTHER: &str = "FORGED OR ALTERED: something else was signed";

#[actix_web::test]
async fn a_command_that_a_passkey_signed_runs_once_and_the_audit_log_shows_what_was_altered() {
    let host = Signed::start().await;
    let payloads = ["echo one", "echo two"].map(payload);
    let [one, two] = payloads.each_ref().map(|payload| of(payload, &host.passkey.signature(payload)));
    let stranger = of(&payloads[0], &Passkey::eddsa().signature(&payloads[0]));
    let unverified = Said { flags: 0b001, ..TRUTH };
    let unverified = of(&payloads[0], &signature_of(&host.passkey.assert(&payloads[0], &unverified)));

    for signed in [&stranger, &unverified] {
        assert_refused(&host.run_as("echo one", signed).await, "unknown_signer");
    }
    for (command, signed, printed) in [("echo one", &one, "one\n"), ("echo two", &two, "two\n")] {
        let done: Value = host.run_as(command, signed).await.json();
        assert_eq!((&done["output"], &done["status"]), (&json!(printed), &json!("succeeded")), "{done}");
    }
    let again = of(&payloads[0], &host.passkey.signature(&payloads[0]));
    assert_refused(&host.run_as("echo one", &again).await, "replayed");
    // A command that was waited for may be answered before its end is written.
    let store = host.scene.site.service.state.store.clone();
    let records = eventually("all ends are in the log", async || {
        let records = store.audit_after(None, 1_000).await.unwrap();
        let is_end = |record: &&Record| record.action == action::COMMAND_RUN && record.outcome != "started";
        (records.iter().filter(is_end).count() == 5).then_some(records)
    });
    let records = records.await;
    let log = Log::of(host, records).await;

    let refused = "no signature is by a known signer: refused by the agent (unknown_signer)";
    let whole = [refused, refused, CLEO, CLEO, &format!("{CLEO}: refused by the agent (replayed)")];
    log.expect("nothing", 0, &whole).await;
    let [first, second] = [2, 3].map(|number| log.order(action::COMMAND_RUN, number));
    let signs = |place: usize, signed: Value| log.with(place, detail(|detail| detail["signed"] = signed.clone()));
    let swapped = |[to_first, to_second]: [Value; 2]| {
        let mut records = signs(first, to_first);
        records[second] = signs(second, to_second)[second].clone();
        records
    };
    let with_signatures_of =
        |signed: &Value, other: &Value| json!({ "payload": signed["payload"], "signatures": other["signatures"] });
    let edited = with_signatures_of(&json!({ "payload": base64(&payload("echo six")) }), &one);
    let with_text = |command: &str, signed: &Value| {
        log.with(first, detail(|detail| (detail["command"], detail["signed"]) = (json!(command), signed.clone())))
    };
    let mut cases = vec![
        ("the payload", signs(first, edited.clone()), vec![(first, OTHER)]),
        ("the text and the payload", with_text("echo six", &edited), vec![(first, STRANGER)]),
        ("the text", with_text("echo six", &one), vec![(first, OTHER)]),
        ("the signer", signs(first, stranger), vec![(first, STRANGER)]),
        ("that the person was verified", signs(first, unverified), vec![(first, STRANGER)]),
        (
            "whose signature is whose",
            swapped([with_signatures_of(&one, &two), with_signatures_of(&two, &one)]),
            vec![(first, STRANGER), (second, STRANGER)],
        ),
        ("which order is whose", swapped([two.clone(), one.clone()]), vec![(first, OTHER), (second, OTHER)]),
    ];
    for part in 0..3 {
        let mut assertion = log.host.passkey.assert(&payloads[0], &TRUTH);
        let last = assertion[part].len() - 1;
        assertion[part][last] ^= 1;
        let altered = of(&payloads[0], &signature_of(&assertion));
        cases.push(("a bit of the signature", signs(first, altered), vec![(first, STRANGER)]));
    }
    let replayed = log.records.iter().rposition(|record| record.action == action::COMMAND_RUN).unwrap();
    let used = format!("FORGED OR ALTERED: the signatures were used before, by entry {}", log.records[first].seq);
    let as_if_it_ran = log.with(replayed, |record| {
        (record.outcome, record.detail) = ("ok".to_owned(), "{}".to_owned());
    });

    for (what, records, found) in cases {
        let mut said = whole;
        for (place, words) in &found {
            said[if *place == first { 2 } else { 3 }] = words;
        }
        log.write(records).await;
        log.expect(what, found.len(), &said).await;
    }
    log.write(as_if_it_ran).await;
    let mut said = whole;
    said[4] = &used;
    log.expect("that it was refused", 1, &said).await;
    log.write(log.records.clone()).await;
    log.expect("nothing any more", 0, &whole).await;
}

impl Log {
    /// What the command line says of each command, and how many are wrong.
    async fn expect(&self, what: &str, wrong: usize, said: &[&str]) {
        let found = self.host.verify("allowed_signers").await;
        let lines: Vec<&str> =
            found.stdout.lines().filter_map(|line| Some(line.split_once(": echo ")?.1.split_once(": ")?.1)).collect();
        assert_eq!(lines, said, "{what}: {found:?}");
        assert_eq!(found.code, Some(i32::from(wrong > 0)), "{what}: {found:?}");
        let end = format!("without the signatures that servers ask for: {wrong}\n");
        assert!(wrong == 0 || found.stderr.ends_with(&end), "{what}: {found:?}");
    }
}

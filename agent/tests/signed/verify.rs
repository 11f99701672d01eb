//! Whether the agent would run what a file contains: `verify`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use crate::host::{Host, Outcome, refusal};

/// Changes that make of a command's payload one of another kind.
fn of_terminal() -> Vec<(&'static str, Value)> {
    vec![("kind", json!("terminal")), ("command", Value::Null)]
}

fn of_container() -> Vec<(&'static str, Value)> {
    vec![("kind", json!("container")), ("command", Value::Null), ("action", json!("restart web"))]
}

impl Host {
    /// The exit code of `verify`, and what it says about a payload that these keys sign.
    async fn verify(&self, payload: &[u8], keys: &[&str]) -> (Option<i32>, String) {
        let signed = self.sign(payload, keys);
        self.verify_file(&serde_json::to_vec(&signed).unwrap()).await
    }

    async fn verify_file(&self, content: &[u8]) -> (Option<i32>, String) {
        let (file, state) = (self.path("signed.json"), self.path("state"));
        fs::write(&file, content).unwrap();
        self.tool(&["verify", file.to_str().unwrap(), "--state-dir", state.to_str().unwrap()]).await
    }

    /// Checks how the answer ends.
    async fn expect_verdict(&self, payload: &[u8], keys: &[&str], code: i32, verdict: &str) {
        let (exit, said) = self.verify(payload, keys).await;
        assert_eq!(exit, Some(code), "{said}");
        assert!(said.ends_with(&format!("\n{verdict}\n")), "{verdict}: {said}");
    }
}

/// What is said where the record of what has run cannot be read.
fn unknown(once: &str, why: &str) -> String {
    format!("Would run, {once}, unless it has run already, which is not known: {why}.")
}

fn missing(record: &Path) -> String {
    format!("there is no {}", record.display())
}

#[tokio::test]
async fn it_says_what_a_payload_means_who_signed_it_and_why_it_would_not_run() {
    let host = Host::stopped("commands = \"signed\"\n").await;
    let record = host.path("state/signed-nonces");
    let hours = |hours: i64| json!(Timestamp::now().plus_millis(hours * 3_600_000));
    let window = |from: i64, until: i64| vec![("not_before", hours(from)), ("expires_at", hours(until))];

    let (code, said) = host.verify(&host.payload(&[("command", json!("id\nwhoami"))]), &["ada"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("A command for web-1: id\\nwhoami\nFor at most 60 s.\nHolds from 20"), "{said}");
    assert!(said.contains("\nSigned by ada with ssh-ed25519 "), "{said}");
    assert!(said.ends_with(&format!("\n{}\n", unknown("once", &missing(&record)))), "{said}");
    for (changes, key, expected) in [
        (vec![], "eve", "no signature is by a signer whom this server knows"),
        (vec![("servers", json!(["db-1"]))], "ada", "it is for other servers than `web-1`"),
        (vec![("v", json!(7))], "ada", "version 7"),
        (window(-2, -1), "ada", "the signed payload held until "),
        (window(1, 2), "ada", "the signed payload holds from "),
    ] {
        let (code, said) = host.verify(&host.payload(&changes), &[key]).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("Would not run: ") && said.contains(expected), "{expected}: {said}");
    }
    let earlier = json!(Timestamp::now().plus_millis(-600_000));
    let recurs = |cron: &str| {
        host.payload(&[("repeat", json!({ "cron": cron, "time_zone": "UTC" })), ("not_before", earlier.clone())])
    };
    let (code, said) = host.verify(&recurs("* * * * *"), &["ada"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Each time that `* * * * *` is due in UTC, from 30 s before to 5 minutes after"), "{said}");
    let expected = unknown("once for the time at which it is due", &missing(&record));
    assert!(said.ends_with(&format!("\n{expected}\n")), "{said}");
    let (code, said) = host.verify(&recurs("0 0 29 2 *"), &["ada"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Would not run: the signed payload recurs") && said.contains("not due now"), "{said}");
    let (code, said) = host.verify_file(b"{}").await;
    assert_eq!(code, Some(2), "{said}");
    assert!(!host.path("state").exists(), "it only reads");
}

#[tokio::test]
async fn it_counts_people() {
    let host = Host::stopped("commands = \"signed\"\napprovals = 2\n").await;
    let payload = host.payload(&[]);

    for keys in [&["ada"][..], &["ada", "ada-2"], &["ben", "eve"]] {
        host.expect_verdict(&payload, keys, 1, "Would not run: 1 of 2 different people have signed.").await;
    }
    let expected = unknown("once", &missing(&host.path("state/signed-nonces")));
    host.expect_verdict(&payload, &["ada", "ben"], 0, &expected).await;
}

#[tokio::test]
async fn it_goes_by_the_policys_word_for_that_kind_of_thing() {
    let strict = Host::stopped("commands = \"signed\"\nallow = [\"uptime\", \"true\"]\n").await;
    let open = Host::stopped("terminal = \"signed\"\ncommands = \"on\"\ndocker = [\"ada\", \"team:ops\"]\n").await;
    let forbidden = |line: &str| format!("Would not run: the policy says {line}.");
    let unsigned =
        |line: &str| format!("Would run as often as the service asks, and needs no signature: the policy says {line}.");

    let terminal = strict.payload(&of_terminal());
    strict.expect_verdict(&terminal, &["ada"], 1, &forbidden("terminal = \"off\"")).await;
    let container = strict.payload(&of_container());
    strict.expect_verdict(&container, &["ada"], 1, &forbidden("docker = \"read\"")).await;
    // Signers and times do not count there.
    let [from, until] = [-2, -1].map(|hours| json!(Timestamp::now().plus_millis(hours * 3_600_000)));
    let expired = open.payload(&[("not_before", from), ("expires_at", until)]);
    open.expect_verdict(&expired, &["eve"], 0, &unsigned("commands = \"on\"")).await;
    let container = open.payload(&of_container());
    open.expect_verdict(&container, &["ada"], 0, &unsigned("docker = [\"ada\",\"team:ops\"]")).await;
    let expected = unknown("once", &missing(&open.path("state/signed-nonces")));
    open.expect_verdict(&open.payload(&of_terminal()), &["ada"], 0, &expected).await;

    let allowed = "Without a signature it runs as often as the service asks, because `allow` lists it.";
    strict.expect_verdict(&strict.payload(&[("command", json!("true"))]), &["ada"], 0, allowed).await;
    strict.expect_verdict(&strict.payload(&[("command", json!("true"))]), &["eve"], 1, allowed).await;
}

#[tokio::test]
async fn it_reads_what_has_run_while_the_agent_keeps_the_record() {
    let mut host = Host::start().await;
    let (used, fresh) = (host.payload(&[]), host.payload(&[]));
    let order = host.order(Some(host.sign(&used, &["ada"])));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    let record = host.path("state/signed-nonces");

    let has_run = "Would not run: what was signed has run already: sign it again.";
    host.expect_verdict(&used, &["ada"], 1, has_run).await;
    host.expect_verdict(&fresh, &["ada"], 0, "Would run, once.").await;
    let before = [("not_before", json!(Timestamp::now().plus_millis(-3_600_000)))];
    let (code, said) = host.verify(&host.payload(&before), &["ada"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("\nWould not run: this server knows only since 20"), "{said}");

    // It has neither taken the record from the agent nor changed it.
    let again = host.order(Some(host.sign(&used, &["ada"])));
    assert_eq!(host.ask(again).await, refusal("replayed"));
    let order = host.order(Some(host.sign(&fresh, &["ada"])));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    host.expect_verdict(&fresh, &["ada"], 1, has_run).await;

    let new = host.payload(&[]);
    fs::write(&record, "damaged\n").unwrap();
    host.expect_verdict(&new, &["ada"], 0, &unknown("once", &format!("{} is damaged", record.display()))).await;
    fs::remove_file(&record).unwrap();
    host.expect_verdict(&new, &["ada"], 0, &unknown("once", &missing(&record))).await;
    fs::create_dir(&record).unwrap();
    let expected = format!("{}: it is not a regular file", record.display());
    host.expect_verdict(&new, &["ada"], 0, &unknown("once", &expected)).await;
}

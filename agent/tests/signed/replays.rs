//! What was seen before is sent again.

use rustix::process::Signal;
use signalbox_protocol::agent::Execute;

use crate::host::{Host, Outcome, refusal};

#[tokio::test]
async fn what_was_signed_runs_once_whatever_is_sent_again_and_restarted_in_between() {
    let mut host = Host::start().await;
    let mut seen: Vec<Execute> = Vec::new();
    for keys in [&["ada"][..], &["ada-2"], &["ben", "ada"], &["eve", "ben"]] {
        let signed = host.sign(&host.payload(&[]), keys);
        let order = host.order(Some(signed));
        assert_eq!(host.ask(order.clone()).await, Outcome::Ran, "{keys:?}");
        seen.push(order);
    }
    assert_eq!(host.runs(), 4);

    for round in 0..8 {
        // As they were, in either order: this run of the agent may know their ids.
        if round == 0 {
            for order in seen.iter().rev().chain(&seen).cloned().collect::<Vec<_>>() {
                host.ask_again(order).await;
            }
        } else {
            for order in seen.iter().rev().chain(&seen).cloned().collect::<Vec<_>>() {
                assert_eq!(host.ask(order).await, refusal("replayed"));
            }
        }
        // With ids that the agent does not know, with more and with fewer signatures, and with other ones in another order.
        for order in seen.clone() {
            let mut signed = order.signed.clone().unwrap();
            for _ in 0..signed.signatures.len() {
                signed.signatures.rotate_left(1);
                let again = host.order(Some(signed.clone()));
                assert_eq!(host.ask(again).await, refusal("replayed"));
            }
            signed.signatures.extend(order.signed.unwrap().signatures);
            let again = host.order(Some(signed));
            assert_eq!(host.ask(again).await, refusal("replayed"));
        }
        host.restart(if round % 2 == 0 { Signal::KILL } else { Signal::TERM }).await;
    }

    assert_eq!(host.runs(), 4);
    host.expect_tries(148);
}

#[tokio::test]
async fn an_agent_that_lost_its_record_runs_nothing_that_was_valid_before() {
    let mut host = Host::start().await;
    let signed = host.sign(&host.payload(&[]), &["ada"]);
    let order = host.order(Some(signed));
    let waiting = host.sign(&host.payload(&[]), &["ada"]);
    assert_eq!(host.ask(order.clone()).await, Outcome::Ran);

    for damage in ["removed", "damaged"] {
        host.stop(Signal::KILL).await;
        let record = host.path("state/signed-nonces");
        match damage {
            "removed" => std::fs::remove_file(&record).unwrap(),
            _ => std::fs::write(&record, "damaged\n").unwrap(),
        }
        host.run().await;
        assert_eq!(host.ask(order.clone()).await, refusal("expired"), "{damage}");
        let order = host.order(Some(waiting.clone()));
        assert_eq!(host.ask(order).await, refusal("expired"), "{damage}");
    }
    let fresh = host.sign(&host.payload(&[]), &["ada"]);
    let order = host.order(Some(fresh));
    assert_eq!(host.ask(order).await, Outcome::Ran);

    assert_eq!(host.runs(), 2);
    host.expect_tries(6);
}

#[tokio::test]
async fn a_full_disk_and_a_record_that_cannot_be_written_refuse() {
    let mut host = Host::start().await;
    let signed = host.sign(&host.payload(&[]), &["ada"]);
    let next = host.path("state/signed-nonces.new");
    // Whatever is written there finds no space.
    std::os::unix::fs::symlink("/dev/full", &next).unwrap();

    for _ in 0..3 {
        let order = host.order(Some(signed.clone()));
        match host.ask(order).await {
            Outcome::Refused(detail) => assert!(detail.contains("No space left on device"), "{detail}"),
            Outcome::Ran => panic!("it ran without a record"),
        }
    }
    std::fs::remove_file(&next).unwrap();
    std::fs::create_dir(&next).unwrap();
    let order = host.order(Some(signed.clone()));
    assert!(matches!(host.ask(order).await, Outcome::Refused(detail) if detail.contains("cannot record")));
    std::fs::remove_dir(&next).unwrap();
    assert_eq!(host.runs(), 0);

    let order = host.order(Some(signed.clone()));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    let order = host.order(Some(signed));
    assert_eq!(host.ask(order).await, refusal("replayed"));
    assert_eq!(host.runs(), 1);
    host.expect_tries(6);
}

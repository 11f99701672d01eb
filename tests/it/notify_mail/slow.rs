//! Mail servers that are slow at every stage, and recipients with different results.

use std::sync::Mutex;

use signalbox::notify::hand_over::{HandOver, Noting, Unkept};
use signalbox::notify::limits::Limits;
use signalbox::store::{Progress, Standing, Verdict};

use super::*;
use crate::support::eventually;

/// Anything later than this is given up; anything in time takes less, unless the server pauses.
const SHORT: Duration = Duration::from_secs(2);

/// Stores what was recorded before the mail was handed over.
#[derive(Default)]
struct Notes(Mutex<Vec<Progress>>);

impl HandOver for Notes {
    fn begins<'a>(&'a self, progress: &'a Progress) -> Noting<'a> {
        self.0.lock().unwrap().push(progress.clone());
        Box::pin(std::future::ready(true))
    }
}

/// Notes nothing: the outbox is away.
struct Away;

impl HandOver for Away {
    fn begins<'a>(&'a self, _: &'a Progress) -> Noting<'a> {
        Box::pin(std::future::ready(false))
    }
}

fn patient() -> Limits {
    Limits::each(PATIENCE)
}

fn limited(server: &MailServer, limits: Limits) -> Sender {
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port);
    Sender::new(SenderConfig { limits, ..config(&url, None) }).unwrap()
}

async fn send_rest(
    sender: &Sender,
    to: &[&str],
    before: &Progress,
    hand_over: &dyn HandOver,
) -> Result<Receipt, Refused> {
    let settings = Settings::Email { to: to.iter().map(|to| (*to).to_owned()).collect() };
    in_time("a mail is sent", sender.send_rest(&settings, &message(), before, hand_over)).await
}

fn recipients(mails: &[Value]) -> Vec<Value> {
    mails.iter().map(|mail| mail["to"].clone()).collect()
}

/// Sends a mail until no pause of the server makes another answer late. It is not handed over before.
async fn taken(sender: &Sender) -> Receipt {
    eventually("a mail is taken", async || match send(sender).await {
        Ok(receipt) => Some(receipt),
        Err(refused) => {
            assert_eq!(refused.kind, Refusal::Unreachable, "{refused}");
            None
        }
    })
    .await
}

#[tokio::test]
async fn a_late_greeting_is_waited_for_and_a_later_one_is_not() {
    let server = MailServer::plain(json!({"slow": {"greeting": 4}})).await;
    let waits = limited(&server, Limits { command: SHORT, ..patient() });
    let leaves = limited(&server, Limits { connect: SHORT / 2, greeting: SHORT / 2, ..patient() });

    let (kind, detail) = refusal(send(&leaves).await);

    assert_eq!((kind, detail.as_str()), (Refusal::Unreachable, "127.0.0.1 sent no greeting in time"));
    taken(&waits).await;
    server.mails(1).await;
}

#[tokio::test]
async fn without_a_go_ahead_nothing_is_handed_over() {
    let server = MailServer::plain(json!({"slow": {"data": 20}})).await;
    let sender = limited(&server, Limits { data: SHORT, ..patient() });
    let notes = Notes::default();

    let refused = send_rest(&sender, &["ops@example.com"], &Progress::default(), &notes).await.unwrap_err();

    assert_eq!(refused.kind, Refusal::Unreachable, "{refused}");
    assert!(matches!(refused.progress.of("ops@example.com"), Some(Standing::Waiting { .. })), "{refused:?}");
    assert!(notes.0.lock().unwrap().is_empty());
    server.mails(0).await;
}

#[tokio::test]
async fn a_late_answer_to_the_final_dot_is_waited_for() {
    let server = MailServer::plain(json!({"slow": {"dot": 4}})).await;
    let sender = limited(&server, Limits { greeting: SHORT, command: SHORT, data: SHORT, ..patient() });

    let receipt = taken(&sender).await;

    assert_eq!(receipt.progress.verdict(), Some(Verdict::Delivered));
    server.mails(1).await;
}

#[tokio::test]
async fn without_an_answer_to_the_final_dot_it_is_handed_over_once_more_and_no_third_time() {
    let server = MailServer::plain(json!({"slow": {"dot": 20}})).await;
    let sender = limited(&server, Limits { dot: SHORT, ..patient() });
    let (to, notes) = (["ops@example.com"], Notes::default());

    let first = send_rest(&sender, &to, &Progress::default(), &notes).await.unwrap_err();
    let second = send_rest(&sender, &to, &first.progress, &notes).await.unwrap();
    let third = send_rest(&sender, &to, &second.progress, &notes).await.unwrap();

    assert_eq!((first.kind, first.progress.verdict()), (Refusal::Perhaps, Some(Verdict::Perhaps)));
    assert_eq!(first.detail, "127.0.0.1 was sent the mail and did not answer in time");
    assert_eq!((second.progress.of(to[0]), &third.progress), (Some(&Standing::Perhaps { times: 2 }), &second.progress));
    // The records from before match the outcome.
    assert_eq!(*notes.0.lock().unwrap(), [first.progress, second.progress]);
    server.mails(2).await;
}

#[tokio::test]
async fn what_cannot_be_noted_is_not_handed_over() {
    let server = MailServer::plain(json!({})).await;
    let sender = limited(&server, patient());

    let refused = send_rest(&sender, &["ops@example.com"], &Progress::default(), &Away).await.unwrap_err();

    assert_eq!((refused.kind, refused.detail.as_str()), (Refusal::Unreachable, "the outbox could not be written"));
    expect_no_mail_before(&server, &sender).await;
}

#[tokio::test]
async fn a_recipient_that_took_it_does_not_get_it_again() {
    let server = MailServer::plain(json!({"rcpt": {"grey@example.com": "450 come back later"}})).await;
    let (sender, to) = (limited(&server, patient()), ["a@example.com", "grey@example.com", "b@example.com"]);

    let first = send_rest(&sender, &to, &Progress::default(), &Unkept).await.unwrap_err();
    let second = send_rest(&sender, &to, &first.progress, &Unkept).await.unwrap_err();

    assert_eq!((first.kind, first.holds_others(1)), (Refusal::Deferred, false), "{first}");
    assert!(
        first.detail.contains("accepted the mail for 2 of 3 recipients") && first.detail.contains("come back later"),
        "{first}"
    );
    assert_eq!(second.progress, first.progress);
    assert_eq!(recipients(&server.mails(1).await), [json!(["a@example.com", "b@example.com"])]);
}

#[tokio::test]
async fn a_recipient_on_which_the_server_hangs_keeps_nothing_from_the_others() {
    let server = MailServer::plain(json!({"slow": {"rcpt": {"tar@example.com": 20}}})).await;
    let (sender, to) = (limited(&server, Limits { command: SHORT, ..patient() }), ["tar@example.com", "a@example.com"]);

    let refused = send_rest(&sender, &to, &Progress::default(), &Unkept).await.unwrap_err();

    assert_eq!(refused.progress.of("a@example.com"), Some(&Standing::Delivered));
    assert!(refused.progress.is_left("tar@example.com") && !refused.holds_others(1), "{refused:?}");
    assert_eq!(recipients(&server.mails(1).await), [json!(["a@example.com"])]);
}

#[tokio::test]
async fn a_mail_that_is_not_wanted_for_all_together_is_sent_to_each() {
    let server = MailServer::plain(json!({"most": 1})).await;
    let sender = limited(&server, patient());

    let receipt = send_to(&sender, &["a@example.com", "b@example.com"]).await.unwrap();

    assert_eq!(receipt.progress.verdict(), Some(Verdict::Delivered));
    let offered = recipients(&server.mails(3).await);
    assert_eq!(offered[1..], [json!(["a@example.com"]), json!(["b@example.com"])]);
}

#[tokio::test]
async fn an_address_that_the_server_cannot_spell_keeps_nothing_from_the_others() {
    let server = MailServer::plain(json!({})).await;
    let sender = limited(&server, patient());

    let receipt = send_to(&sender, &["a@example.com", "jürgen@example.com"]).await.unwrap();

    assert_eq!(receipt.progress.verdict(), Some(Verdict::Partly));
    assert!(receipt.detail.contains("beyond ASCII"), "{receipt:?}");
    assert_eq!(recipients(&server.mails(1).await), [json!(["a@example.com"])]);
}

//! Sending mails by a real SMTP server.

mod slow;

use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use signalbox::notify::channel::Settings;
use signalbox::notify::limits::Limits;
use signalbox::notify::mail::SmtpConfig;
use signalbox::notify::message::{Event, Item, Message};
use signalbox::notify::sender::{Receipt, Refusal, Refused, Sender, SenderConfig, SenderError};
use signalbox_protocol::Timestamp;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::support::authority::Authority;
use crate::support::mail::MailServer;
use crate::support::port::Port;
use crate::support::{PATIENCE, in_time};

const FROM: &str = "Signalbox <signalbox@example.com>";
const PASSWORD: &str = "p@ss/w:rd ü+";
/// The same in a URL.
const ENCODED: &str = "p%40ss%2Fw%3Ard%20%C3%BC+";

fn config(url: &str, authority: Option<&Authority>) -> SenderConfig {
    SenderConfig {
        networks: Vec::new(),
        ca_file: authority.map(Authority::file),
        smtp: Some(SmtpConfig { url: SecretString::from(url), from: FROM.to_owned() }),
        push_key: None,
        public_url: None,
        limits: Limits::each(PATIENCE),
    }
}

fn sender(url: &str, authority: Option<&Authority>) -> Sender {
    Sender::new(config(url, authority)).unwrap()
}

fn message() -> Message {
    let item = Item { event: Event::Test, alert: None, server_name: String::new(), server_tags: Vec::new() };
    let at = Timestamp::parse("2026-11-21T09:35:00Z").unwrap();
    Message { id: Uuid::now_v7(), at, channel: "Nachtschicht ü".to_owned(), items: vec![item], open_alerts: None }
}

async fn send_to(sender: &Sender, to: &[&str]) -> Result<Receipt, Refused> {
    let settings = Settings::Email { to: to.iter().map(|to| (*to).to_owned()).collect() };
    let outcome = in_time("a mail is sent", sender.send(&settings, &message())).await;
    let detail = outcome.as_ref().map_or_else(|refused| &refused.detail, |receipt| &receipt.detail);
    assert!(!detail.contains(PASSWORD) && !detail.contains(ENCODED), "{detail}");
    outcome
}

async fn send(sender: &Sender) -> Result<Receipt, Refused> {
    send_to(sender, &["ops@example.com"]).await
}

/// Checks that no mail has reached the server, by one that does. It answers all of them in one thread, in order.
async fn expect_no_mail_before(server: &MailServer, sender: &Sender) {
    send_to(sender, &["last@example.com"]).await.unwrap();
    assert_eq!(server.mails(1).await[0]["to"], json!(["last@example.com"]));
}

#[track_caller]
fn refusal(outcome: Result<Receipt, Refused>) -> (Refusal, String) {
    let refused = outcome.expect_err("it was taken");
    (refused.kind, refused.detail)
}

/// A header of a mail that is on one line.
fn header<'a>(mail: &'a Value, name: &str) -> Vec<&'a str> {
    let head = mail["mail"].as_str().unwrap().split("\r\n\r\n").next().unwrap();
    head.lines().filter_map(|line| line.strip_prefix(&format!("{name}: "))).collect()
}

#[tokio::test]
async fn a_mail_arrives() {
    let server = MailServer::plain(json!({})).await;
    let sender = sender(&format!("smtp://127.0.0.1:{}?tls=none", server.port), None);
    let settings = Settings::Email { to: vec!["ops@example.com".to_owned(), "night@example.com".to_owned()] };
    let message = message();

    let receipt = sender.send(&settings, &message).await.unwrap();

    let mail = server.mails(1).await.remove(0);
    assert_eq!(receipt.detail, "127.0.0.1 accepted the mail");
    assert_eq!((&mail["sender"], &mail["tls"]), (&json!("signalbox@example.com"), &json!(false)));
    assert_eq!(mail["to"], json!(["ops@example.com", "night@example.com"]));
    assert_eq!(header(&mail, "Message-ID"), [format!("<{}@example.com>", message.id)]);
    assert_eq!(header(&mail, "Date"), ["Sat, 21 Nov 2026 09:35:00 +0000"]);
    assert_eq!(header(&mail, "From"), [FROM]);
    assert_eq!(header(&mail, "To"), ["ops@example.com, night@example.com"]);
    assert_eq!(header(&mail, "Subject"), ["[Signalbox] Test message from Signalbox"]);
    assert_eq!(header(&mail, "Auto-Submitted"), ["auto-generated"]);
    assert!(header(&mail, "Content-Type")[0].starts_with("multipart/alternative"), "{mail}");
}

#[tokio::test]
async fn a_repeated_mail_has_the_same_id() {
    let server = MailServer::plain(json!({})).await;
    let sender = sender(&format!("smtp://127.0.0.1:{}?tls=none", server.port), None);
    let settings = Settings::Email { to: vec!["ops@example.com".to_owned()] };
    let message = message();

    for _ in 0..2 {
        sender.send(&settings, &message).await.unwrap();
    }

    let mails = server.mails(2).await;
    assert_eq!(header(&mails[0], "Message-ID"), header(&mails[1], "Message-ID"));
}

#[tokio::test]
async fn names_add_no_header() {
    let server = MailServer::plain(json!({})).await;
    let sender = sender(&format!("smtp://127.0.0.1:{}?tls=none", server.port), None);
    let settings = Settings::Email { to: vec!["ops@example.com".to_owned()] };
    let mut message = message();
    message.items[0].event = Event::Triggered;
    message.items[0].server_name = "web\r\nBcc: evil@example.com\r\n\r\n.\r\nbody".to_owned();

    sender.send(&settings, &message).await.unwrap();

    let mail = server.mails(1).await.remove(0);
    assert_eq!((header(&mail, "Bcc").len(), header(&mail, "Subject").len()), (0, 1), "{mail}");
    assert_eq!(mail["to"], json!(["ops@example.com"]));
}

#[tokio::test]
async fn addresses_that_are_none_are_misconfigured() {
    let server = MailServer::plain(json!({})).await;
    let sender = sender(&format!("smtp://127.0.0.1:{}?tls=none", server.port), None);

    for to in ["", "nobody", "a@b\r\nRCPT TO:<evil@example.com>", "a@example.com>\r\nDATA"] {
        let (kind, detail) = refusal(send_to(&sender, &[to]).await);

        assert_eq!(kind, Refusal::Misconfigured, "{to:?}: {detail}");
    }
    assert_eq!(refusal(send_to(&sender, &[]).await).0, Refusal::Misconfigured);
    expect_no_mail_before(&server, &sender).await;
}

#[tokio::test]
async fn a_mail_goes_over_tls_with_a_password() {
    let authority = Authority::new();
    for (tls, scheme) in [("starttls", "smtp"), ("smtps", "smtps")] {
        let told = json!({"user": "us@er", "password": PASSWORD});
        let server = MailServer::secure(tls, &authority, told).await;
        let url = format!("{scheme}://us%40er:{ENCODED}@localhost:{}", server.port);

        let outcome = send(&sender(&url, Some(&authority))).await;

        assert!(outcome.is_ok(), "{tls}: {outcome:?}");
        let mail = server.mails(1).await.remove(0);
        assert_eq!((&mail["tls"], &mail["authenticated"]), (&json!(true), &json!(true)), "{tls}");
        assert_eq!(server.attempts(1).await[0]["password"], PASSWORD);
    }
}

#[tokio::test]
async fn a_wrong_password_leaves_the_message_waiting() {
    let authority = Authority::new();
    let server = MailServer::secure("starttls", &authority, json!({"user": "user", "password": "other"})).await;
    let url = format!("smtp://user:{ENCODED}@localhost:{}", server.port);

    let (kind, detail) = refusal(send(&sender(&url, Some(&authority))).await);

    assert_eq!(kind, Refusal::Unreachable);
    assert!(detail.starts_with("localhost: ") && detail.contains("535"), "{detail}");
    let right = sender(&format!("smtp://user:other@localhost:{}", server.port), Some(&authority));
    expect_no_mail_before(&server, &right).await;
}

#[tokio::test]
async fn without_starttls_nothing_is_sent() {
    let authority = Authority::new();
    let server = MailServer::plain(json!({"user": "user", "password": PASSWORD})).await;
    let url = format!("smtp://user:{ENCODED}@localhost:{}", server.port);

    let (kind, detail) = refusal(send(&sender(&url, Some(&authority))).await);

    assert_eq!(kind, Refusal::Unreachable);
    assert!(detail.contains("does not offer STARTTLS") && detail.contains("?tls=none"), "{detail}");
    expect_no_mail_before(&server, &sender(&format!("{url}?tls=none"), None)).await;
    // That of the last mail.
    server.attempts(1).await;
}

#[tokio::test]
async fn an_unknown_authority_gets_neither_password_nor_mail() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (tls, scheme) in [("starttls", "smtp"), ("smtps", "smtps")] {
        let server = MailServer::secure(tls, &authority, json!({"user": "user", "password": PASSWORD})).await;
        // The certificate is for localhost, by an authority that one of them knows.
        let strange = format!("{scheme}://user:{ENCODED}@localhost:{}", server.port);
        let misnamed = format!("{scheme}://user:{ENCODED}@127.0.0.1:{}", server.port);

        for (url, trusted) in [(strange.as_str(), &other), (misnamed.as_str(), &authority)] {
            let (kind, detail) = refusal(send(&sender(url, Some(trusted))).await);

            assert_eq!(kind, Refusal::Unreachable, "{tls}: {detail}");
            assert!(detail.contains("certificate"), "{tls}: {detail}");
        }
        expect_no_mail_before(&server, &sender(&strange, Some(&authority))).await;
        // That of the last mail.
        server.attempts(1).await;
    }
}

#[tokio::test]
async fn a_password_is_sent_in_clear_to_this_machine_alone() {
    let server = MailServer::plain(json!({"user": "user", "password": PASSWORD})).await;
    // This machine again, in a notation that the sender does not recognise.
    let foreign = format!("smtp://user:{ENCODED}@127.1:{}?tls=none", server.port);
    let local = format!("smtp://user:{ENCODED}@localhost:{}?tls=none", server.port);

    let (kind, detail) = refusal(send(&sender(&foreign, None)).await);
    let attempts = server.attempts(0).await.len();
    let outcome = send(&sender(&local, None)).await;

    assert_eq!((kind, attempts), (Refusal::Unreachable, 0), "{detail}");
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(server.attempts(1).await[0]["password"], PASSWORD);
}

#[tokio::test]
async fn what_the_server_answers_decides() {
    let table = [
        (json!({"mail": "550 not you"}), Refusal::Rejected, "550"),
        (json!({"mail": "451 later"}), Refusal::Deferred, "451"),
        (json!({"mail": "530 who are you"}), Refusal::Unreachable, "530"),
        (json!({"rcpt": {"ops@example.com": "550 nobody here"}}), Refusal::Rejected, "nobody here"),
        (json!({"rcpt": {"ops@example.com": "450 greylisted"}}), Refusal::Deferred, "greylisted"),
        (json!({"data": "554 spam"}), Refusal::Rejected, "spam"),
        (json!({"data": "452 disk full"}), Refusal::Deferred, "disk full"),
    ];
    for (told, expected, text) in table {
        let server = MailServer::plain(told.clone()).await;
        let sender = sender(&format!("smtp://127.0.0.1:{}?tls=none", server.port), None);

        let (kind, detail) = refusal(send(&sender).await);

        assert_eq!(kind, expected, "{told}: {detail}");
        assert!(detail.starts_with("127.0.0.1: ") && detail.contains(text), "{detail}");
    }
}

#[tokio::test]
async fn a_mailbox_that_is_gone_keeps_nothing_from_the_others() {
    let server = MailServer::plain(json!({"rcpt": {"gone@example.com": "550 no such user"}})).await;
    let sender = sender(&format!("smtp://127.0.0.1:{}?tls=none", server.port), None);

    let receipt = send_to(&sender, &["a@example.com", "gone@example.com", "b@example.com"]).await.unwrap();

    let mail = server.mails(1).await.remove(0);
    assert_eq!(mail["to"], json!(["a@example.com", "b@example.com"]));
    assert!(receipt.detail.starts_with("127.0.0.1 accepted the mail for 2 of 3 recipients; "), "{receipt:?}");
    assert!(receipt.detail.contains("no such user"), "{receipt:?}");
}

#[tokio::test]
async fn a_server_that_never_speaks_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}?tls=none", listener.local_addr().unwrap());
    let sender =
        Sender::new(SenderConfig { limits: Limits::each(Duration::from_millis(100)), ..config(&url, None) }).unwrap();

    let refused = refusal(send(&sender).await);

    assert_eq!(refused.0, Refusal::Unreachable, "{}", refused.1);
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let nobody = Port::reserve();
    let url = format!("smtp://user:{ENCODED}@{}", nobody.address);

    let (kind, detail) = refusal(send(&sender(&url, None)).await);

    assert_eq!(kind, Refusal::Unreachable);
    assert!(detail.starts_with("127.0.0.1: "), "{detail}");
}

#[test]
fn an_invalid_url_is_reported_without_its_password() {
    let table = [
        ("mail.example.com", "--smtp-url: is not a valid URL"),
        ("http://user:hush-hush@mail.example.com", "--smtp-url: must begin with smtp:// or smtps://"),
        ("smtp://", "--smtp-url: has no host"),
        ("smtp:///", "--smtp-url: has no host"),
        (
            "smtp://user:hush-hush@mail.example.com?tls=maybe",
            "--smtp-url: accepts only the options ?tls=required and ?tls=none",
        ),
        ("smtp://mail.example.com?verify=no", "--smtp-url: accepts only the options ?tls=required and ?tls=none"),
        ("smtps://mail.example.com?tls=none", "--smtp-url: cannot be smtps:// without TLS"),
    ];
    for (url, expected) in table {
        let error = Sender::new(config(url, None)).err().unwrap_or_else(|| panic!("taken: {url}"));
        assert_eq!(error.to_string(), expected, "{url}");
    }
    for url in
        ["smtp://mail.example.com", "smtps://mail.example.com", "smtp://[::1]:25?tls=none", "smtp://h?tls=required"]
    {
        assert!(Sender::new(config(url, None)).is_ok(), "{url}");
    }
}

#[test]
fn an_invalid_sender_is_reported() {
    let smtp = SmtpConfig { url: SecretString::from("smtp://mail.example.com"), from: "nobody".to_owned() };

    let error = Sender::new(SenderConfig { smtp: Some(smtp), ..config("smtp://h", None) }).err().unwrap();

    assert!(matches!(&error, SenderError::SmtpFrom(from) if from == "nobody"), "{error}");
    assert_eq!(error.to_string(), "--smtp-from: \"nobody\" is not an e-mail address");
}

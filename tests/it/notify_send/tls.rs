//! Certificates and host names are verified always.

use signalbox::notify::sender::SenderError;

use super::*;
use crate::support::authority::Authority;
use crate::support::receiver::{Reaction, Receiver};

fn trusting(authority: &Authority) -> Sender {
    Sender::new(SenderConfig { ca_file: Some(authority.file()), ..config(&["127.0.0.0/8"]) }).unwrap()
}

fn url(receiver: &Receiver) -> Settings {
    webhook(format!("https://localhost:{}/{SECRET}", receiver.address.port()))
}

#[tokio::test]
async fn a_private_authority_that_is_named_is_trusted() {
    let authority = Authority::new();
    let receiver = Receiver::tls(authority.acceptor("localhost"), Reaction::Answer(200)).await;

    send(&trusting(&authority), &url(&receiver)).await.unwrap();

    assert_eq!(receiver.only().method, "POST");
}

#[tokio::test]
async fn an_unknown_authority_gets_no_message() {
    let (authority, other) = (Authority::new(), Authority::new());
    let receiver = Receiver::tls(authority.acceptor("localhost"), Reaction::Answer(200)).await;

    for sender in [trusting(&other), local()] {
        let (kind, detail) = refusal(send(&sender, &url(&receiver)).await);

        assert_eq!(kind, Refusal::Unreachable);
        assert!(detail.starts_with("localhost cannot be trusted: "), "{detail}");
    }
    assert!(receiver.taken().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_gets_no_message() {
    let authority = Authority::new();
    let receiver = Receiver::tls(authority.acceptor("other.example.com"), Reaction::Answer(200)).await;

    let (kind, detail) = refusal(send(&trusting(&authority), &url(&receiver)).await);

    assert_eq!(kind, Refusal::Unreachable);
    assert!(detail.starts_with("localhost cannot be trusted: "), "{detail}");
    assert!(receiver.taken().is_empty());
}

#[tokio::test]
async fn a_redirect_does_not_lead_away_from_tls() {
    let authority = Authority::new();
    let plain = Receiver::always(Reaction::Answer(200)).await;
    let receiver = Receiver::tls(authority.acceptor("localhost"), Reaction::redirect(307, plain.url("/"))).await;

    let refused = refusal(send(&trusting(&authority), &url(&receiver)).await);

    assert_eq!(refused, (Refusal::Forbidden, "localhost redirects from https to http".to_owned()));
    assert_eq!(plain.connections(), 0);
}

#[test]
fn an_invalid_authority_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    std::fs::write(&file, "no certificate").unwrap();
    let told = |path: &std::path::Path| {
        let outcome = Sender::new(SenderConfig { ca_file: Some(path.to_owned()), ..config(&[]) });
        match outcome {
            Err(error @ SenderError::CaFile { .. }) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("taken"),
        }
    };

    assert_eq!(told(&file), format!("--notification-ca-file {}: holds no certificate in PEM", file.display()));
    let missing = dir.path().join("missing.pem");
    let expected = format!("--notification-ca-file {}: no such file or directory", missing.display());
    assert!(told(&missing).starts_with(&expected), "{}", told(&missing));
}

//! Where a channel may not lead.

use super::*;
use crate::support::receiver::{Reaction, Receiver};

fn nowhere_special() -> Sender {
    Sender::new(config(&[])).unwrap()
}

#[tokio::test]
async fn this_machine_is_not_reached_in_any_notation() {
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.0.1.",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "127。0。0。1",
        "１２７.0.0.1",
        "%31%32%37.0.0.1",
        "0",
        "0.0.0.0",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
        "LOCALHOST",
    ];
    for host in hosts {
        let url = format!("http://{host}:{}/{SECRET}", receiver.address.port());

        let (kind, detail) = refusal(send(&nowhere_special(), &webhook(url)).await);

        assert_eq!(kind, Refusal::Forbidden, "{host}: {detail}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_leads_only_to_addresses_that_are_allowed() {
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let url = format!("http://localhost:{}/", receiver.address.port());

    let (kind, detail) = refusal(send(&nowhere_special(), &webhook(url.clone())).await);
    send(&local(), &webhook(url)).await.unwrap();

    assert_eq!((kind, detail), (Refusal::Forbidden, private("localhost")));
    assert_eq!((receiver.taken().len(), receiver.connections()), (1, 1));
}

#[tokio::test]
async fn a_network_that_is_configured_is_reached_and_its_neighbour_is_not() {
    let sender = Sender::new(config(&["127.0.0.1/32"])).unwrap();
    let (allowed, neighbour) =
        (Receiver::always(Reaction::Answer(200)).await, Receiver::at("127.0.0.2:0", Reaction::Answer(200)).await);

    send(&sender, &webhook(allowed.url("/"))).await.unwrap();
    let (kind, _) = refusal(send(&sender, &webhook(neighbour.url("/"))).await);

    assert_eq!((kind, neighbour.connections()), (Refusal::Forbidden, 0));
}

#[test]
fn a_url_is_checked_when_a_channel_is_made() {
    let sender = nowhere_special();
    let fine =
        ["https://example.com", "http://example.com:8080/hook?key=x", "https://1.1.1.1/", "https://[2606:4700::1]/"];
    for url in fine {
        assert_eq!(sender.check_url(url), Ok(()), "{url}");
    }
    let refused = [
        ("", "the URL is not valid"),
        ("example.com/hook", "the URL is not valid"),
        ("http://", "the URL is not valid"),
        ("http://[::1", "the URL is not valid"),
        ("ftp://example.com/", "the URL must begin with http:// or https://"),
        ("file:///etc/passwd", "the URL must begin with http:// or https://"),
        ("gopher://example.com/", "the URL must begin with http:// or https://"),
        ("https://user@example.com/", "the URL must not contain a user name or a password"),
        ("https://:hush-hush@example.com/", "the URL must not contain a user name or a password"),
    ];
    let barred = [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
        ("http://2852039166/", "169.254.169.254"),
        ("http://0xa9fea9fe/", "169.254.169.254"),
        ("http://0251.0376.0251.0376/", "169.254.169.254"),
        ("http://0xa9.254.43518/", "169.254.169.254"),
        ("http://[::ffff:169.254.169.254]/", "[::ffff:a9fe:a9fe]"),
        ("http://[fd00:ec2::254]/", "[fd00:ec2::254]"),
        ("https://10.0.0.1/", "10.0.0.1"),
    ];
    for (url, host) in barred {
        assert_eq!(sender.check_url(url), Err(private(host)), "{url}");
    }
    for (url, expected) in refused {
        let detail = sender.check_url(url).expect_err(url);
        assert!(detail.starts_with(expected), "{url}: {detail}");
        assert!(!detail.contains(SECRET), "{detail}");
    }
}

#[test]
fn a_check_knows_the_configured_networks() {
    assert_eq!(local().check_url("http://127.0.0.1:8080/"), Ok(()));
    assert_eq!(local().check_url("http://[::ffff:127.0.0.1]/"), Ok(()));
    assert!(local().check_url("http://10.0.0.1/").is_err());
}

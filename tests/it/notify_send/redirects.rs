//! Receivers that send a message on.

use super::*;
use crate::support::receiver::{Reaction, Receiver};

/// A receiver that sends everything on to `to`.
async fn leading(status: u16, to: impl Into<String>) -> Receiver {
    Receiver::always(Reaction::redirect(status, to)).await
}

#[tokio::test]
async fn a_redirect_keeps_the_message() {
    for status in [301, 302, 307, 308] {
        let end = Receiver::always(Reaction::Answer(200)).await;
        let way = leading(status, end.url("/end")).await;

        send(&local(), &webhook(way.url("/"))).await.unwrap();

        let (sent, taken) = (way.only(), end.only());
        assert_eq!((taken.method.as_str(), taken.path.as_str()), ("POST", "/end"), "{status}");
        assert_eq!((&taken.body, taken.header("Content-Type")), (&sent.body, Some("application/json")));
        assert_eq!(taken.header("X-Signalbox-Signature"), sent.header("X-Signalbox-Signature"));
    }
}

#[tokio::test]
async fn see_other_is_no_yes() {
    let end = Receiver::always(Reaction::Answer(200)).await;
    let way = leading(303, end.url("/sign-in")).await;

    let (kind, detail) = refusal(send(&local(), &webhook(way.url("/"))).await);

    assert_eq!((kind, detail.as_str()), (Refusal::Rejected, "127.0.0.1 answered 303"));
    assert_eq!(end.connections(), 0);
}

#[tokio::test]
async fn three_redirects_are_followed_and_not_a_fourth() {
    // /3 redirects to /2, and so on; /0 accepts it.
    let receiver = Receiver::start(|taken| match taken.path.trim_start_matches('/').parse::<u32>().unwrap() {
        0 => Reaction::Answer(200),
        left => Reaction::redirect(307, format!("/{}", left - 1)),
    })
    .await;

    let near = send(&local(), &webhook(receiver.url("/3"))).await;
    let far = refusal(send(&local(), &webhook(receiver.url("/4"))).await);

    assert!(near.is_ok(), "{near:?}");
    assert_eq!(far, (Refusal::Rejected, "127.0.0.1 redirects more than 3 times".to_owned()));
    assert_eq!(receiver.taken().len(), 8);
}

#[tokio::test]
async fn secrets_stay_with_their_origin() {
    let end = Receiver::always(Reaction::Answer(200)).await;
    let to = end.url("/end");
    let way = Receiver::start(move |taken| match taken.path.as_str() {
        "/message" => Reaction::redirect(307, "/moved"),
        _ => Reaction::redirect(307, &to),
    })
    .await;

    send(&local(), &gotify(way.url(""))).await.unwrap();

    let keys: Vec<Option<String>> =
        way.taken().iter().map(|taken| taken.header("X-Gotify-Key").map(str::to_owned)).collect();
    assert_eq!(keys, [Some(SECRET.to_owned()), Some(SECRET.to_owned())]);
    let taken = end.only();
    assert_eq!(taken.header("X-Gotify-Key"), None, "{taken:?}");
    assert_eq!(taken.header("Referer"), None, "{taken:?}");
}

#[tokio::test]
async fn a_redirect_leads_nowhere_that_a_channel_may_not_lead() {
    let sender = Sender::new(config(&["127.0.0.1/32"])).unwrap();
    let inside = Receiver::at("127.0.0.2:0", Reaction::Answer(200)).await;
    let port = inside.address.port();
    let to = [
        inside.url("/"),
        format!("http://[::ffff:127.0.0.2]:{port}/"),
        format!("http://2130706434:{port}/"),
        format!("//127.0.0.2:{port}/{SECRET}"),
        format!("http://{SECRET}@127.0.0.1:{port}/"),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ];
    for to in to {
        let way = leading(307, &to).await;

        let (kind, detail) = refusal(send(&sender, &webhook(way.url("/"))).await);

        assert_eq!(kind, Refusal::Forbidden, "{to}: {detail}");
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn a_redirect_by_name_is_looked_up_and_checked() {
    // The machine's own name resolves to addresses that this sender may not reach.
    let sender = Sender::new(config(&["127.0.0.3/32"])).unwrap();
    let inside = Receiver::always(Reaction::Answer(200)).await;
    let to = format!("http://localhost:{}/", inside.address.port());
    let way = Receiver::at("127.0.0.3:0", Reaction::redirect(307, to)).await;

    let (kind, detail) = refusal(send(&sender, &webhook(way.url("/"))).await);

    assert_eq!((kind, detail), (Refusal::Forbidden, private("localhost")));
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn a_redirect_that_says_not_where_to_is_rejected() {
    for reaction in [Reaction::Answer(307), Reaction::redirect(307, "http://[")] {
        let receiver = Receiver::always(reaction).await;

        let refused = refusal(send(&local(), &webhook(receiver.url("/"))).await);

        assert_eq!(refused, (Refusal::Rejected, "127.0.0.1 redirects without a valid location".to_owned()));
    }
}

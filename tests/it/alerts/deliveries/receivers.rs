//! Receivers that fail, hang, redirect and come back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use signalbox::config::Config;

use super::{Scene, events, nearby, told, until_told, webhook};
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::eventually;
use crate::support::port::Port;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::site::Site;

/// Does this with the first requests, and then answers.
async fn at_first(count: usize, reaction: Reaction) -> Receiver {
    let seen = AtomicUsize::new(0);
    Receiver::start(
        move |_| {
            if seen.fetch_add(1, Ordering::SeqCst) < count { reaction.clone() } else { Reaction::Answer(200) }
        },
    )
    .await
}

/// Fires once, and returns how often the message came until it was accepted.
async fn delivered_in_the_end(receiver: Receiver, attempts: usize) {
    let mut scene = Scene::with(receiver, json!({})).await;

    let active = scene.fire().await;
    let delivery = eventually("it is delivered", async || {
        let delivery = scene.deliveries().await.into_iter().next()?;
        (delivery["status"] == "sent").then_some(delivery)
    })
    .await;

    assert_eq!(delivery["attempts"], attempts);
    assert_eq!(scene.receiver.taken().len(), attempts);
    let told = told(&scene.receiver);
    assert!(told.len() == 1 && told[0].is("triggered", &active), "always the same message: {told:?}");
}

#[actix_web::test]
async fn a_receiver_that_fails_is_tried_again_with_the_same_message() {
    delivered_in_the_end(at_first(3, Reaction::Answer(500)).await, 4).await;
}

#[actix_web::test]
async fn a_receiver_that_hangs_up_is_tried_once_more_with_the_same_message() {
    delivered_in_the_end(at_first(1, Reaction::Close).await, 2).await;
}

#[actix_web::test]
async fn a_receiver_that_is_asked_too_often_is_tried_again() {
    delivered_in_the_end(at_first(1, Reaction::With(429, "Retry-After", "1".to_owned())).await, 2).await;
}

#[actix_web::test]
async fn a_receiver_that_hangs_is_given_up_and_tried_again() {
    let hasty = |config: &mut Config| {
        nearby(config);
        let limits = &mut config.timing.notify.limits;
        (limits.connect, limits.answer) = (Duration::from_millis(500), Duration::from_millis(500));
    };
    let mut scene = Scene::adjusted(at_first(1, Reaction::Hang).await, json!({}), hasty).await;

    let active = scene.fire().await;
    // An attempt takes a second at most: it is begun, and then it is given up.
    until_told(&scene.receiver, "triggered", &active).await;
    // The second is given up, too, if the machine pauses for so long, and a third one may be there at once.
    eventually("it is tried again", async || (scene.receiver.taken().len() >= 2).then_some(())).await;

    assert_eq!(told(&scene.receiver).len(), 1);
}

#[actix_web::test]
async fn a_redirection_is_followed_with_the_message() {
    let receiver = Receiver::start(|taken| match taken.path.as_str() {
        "/hook" => Reaction::redirect(307, "/moved"),
        _ => Reaction::Answer(200),
    })
    .await;
    let mut scene = Scene::with(receiver, json!({})).await;

    let active = scene.fire().await;
    eventually("it is delivered", async || (scene.deliveries().await[0]["status"] == "sent").then_some(())).await;

    let taken = scene.receiver.taken();
    assert_eq!(taken.iter().map(|taken| taken.path.as_str()).collect::<Vec<_>>(), ["/hook", "/moved"]);
    let told = told(&scene.receiver);
    assert!(told.len() == 1 && told[0].is("triggered", &active), "{told:?}");
}

#[actix_web::test]
async fn a_redirection_into_a_private_network_is_not_followed() {
    let receiver = Receiver::start(|_| Reaction::redirect(307, "http://10.255.255.1/")).await;
    let mut scene = Scene::with(receiver, json!({})).await;

    scene.fire().await;
    let delivery = eventually("it was refused", async || {
        scene.deliveries().await.into_iter().next().filter(|delivery| delivery["error"].is_string())
    })
    .await;

    assert_ne!(delivery["status"], "sent");
    assert!(!delivery["error"].as_str().unwrap().contains("hook"), "no path in the log: {delivery}");
}

#[actix_web::test]
async fn a_receiver_that_refuses_is_not_asked_for_ever_and_holds_nothing_up() {
    let seen = AtomicUsize::new(0);
    let receiver = Receiver::start(move |_| {
        let is_first = seen.fetch_add(1, Ordering::SeqCst) == 0;
        Reaction::Answer(if is_first { 400 } else { 200 })
    })
    .await;
    let mut scene = Scene::with(receiver, json!({})).await;

    scene.fire().await;
    let resolved = scene.recover().await;
    let second = scene.fire().await;

    let told = until_told(&scene.receiver, "triggered", &second).await;
    assert!(told.iter().any(|it| it.alert["id"] == resolved["id"]), "{told:?}");
}

#[actix_web::test]
async fn a_receiver_that_is_away_holds_up_nobody_else_and_gets_everything_in_order() {
    let site = Site::start_with(nearby).await;
    let alarms = Alarms::at(&site);
    let good = Receiver::always(Reaction::Answer(200)).await;
    // Nothing listens there for a while.
    let gone = Port::reserve();
    webhook(&alarms, &format!("http://{}/hook", gone.address), json!({})).await;
    webhook(&alarms, &good.url("/hook"), json!({})).await;
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;

    probe.cpu(95.0).await;
    probe.cpu(10.0).await;
    let alert = alarms.until_only(threshold, "resolved").await;
    until_told(&good, "resolved", &alert).await;
    let back = Receiver::at(&gone.address.to_string(), Reaction::Answer(200)).await;

    let told = until_told(&back, "resolved", &alert).await;
    assert_eq!(events(&told), ["triggered", "resolved"]);
    assert_eq!(events(&super::told(&good)), ["triggered", "resolved"]);
}

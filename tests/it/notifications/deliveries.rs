//! A message in the delivery log and in the test of a channel.

use std::time::Duration;

use serde_json::json;

use super::api::path_of;
use crate::support::mail::MailServer;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::{TestService, text_of};

#[actix_web::test]
async fn the_refusal_of_a_private_address_names_the_flag_that_allows_it() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let hook = |url: &str| json!({"name": "ops", "type": "slack", "settings": {"url": url}});

    let refused = service.new_channel(&account, hook("http://127.0.0.1:9/")).expect(422).await;
    let made = service.new_channel(&account, hook("http://localhost:9/")).expect(201).await;
    let path = format!("{}/test", path_of(&made["id"]));
    let tested = service.client.post(path).bearer(&account.token).expect(200).await;

    let log = service.client.get("/notifications/deliveries").bearer(&account.token).expect(200).await;
    for told in [&refused["detail"][0]["msg"], &tested["detail"], &log[0]["error"]] {
        assert!(text_of(told).contains("--notification-networks"), "{told}");
    }
    assert_eq!(tested["detail"], log[0]["error"]);
}

#[actix_web::test]
async fn a_delivery_tells_who_has_it() {
    let receiver = Receiver::always(Reaction::Hang).await;
    let server = MailServer::plain(json!({"rcpt": {"gone@example.com": "550 no such user"}})).await;
    let port = server.port;
    let service = TestService::start_with(|config| {
        config.notification_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.smtp_url = Some(format!("smtp://127.0.0.1:{port}?tls=none").into());
        config.smtp_from = Some("signalbox@example.com".to_owned());
        let limits = &mut config.timing.notify.limits;
        (limits.connect, limits.answer) = (Duration::from_secs(5), Duration::from_millis(200));
    })
    .await;
    let account = service.register("alice").await;
    let mail = json!({"name": "mail", "type": "email", "settings": {"to": ["a@example.com", "gone@example.com"]}});
    let hook = json!({"name": "hook", "type": "slack", "settings": {"url": receiver.url("/")}});
    for channel in [mail, hook] {
        let made = service.new_channel(&account, channel).expect(201).await;
        service.client.post(format!("{}/test", path_of(&made["id"]))).bearer(&account.token).expect(200).await;
    }

    let log = service.client.get("/notifications/deliveries").bearer(&account.token).expect(200).await;

    let [hook, mail] = [&log[0], &log[1]];
    assert_eq!((&hook["status"], &hook["outcome"]), (&json!("sent"), &json!("perhaps_delivered")));
    let host = format!("{}", receiver.address);
    assert_eq!(hook["recipients"], json!([{"recipient": host, "state": "perhaps", "detail": null}]));
    assert_eq!((&mail["status"], &mail["outcome"]), (&json!("sent"), &json!("partly_delivered")));
    let states: Vec<_> =
        mail["recipients"].as_array().unwrap().iter().map(|one| (&one["recipient"], &one["state"])).collect();
    assert_eq!(
        states,
        [(&json!("a@example.com"), &json!("delivered")), (&json!("gone@example.com"), &json!("refused"))]
    );
    assert!(text_of(&mail["recipients"][1]["detail"]).contains("no such user"), "{mail}");
}

//! Alerts by e-mail, to a real SMTP server.

use serde_json::{Value, json};

use super::nearby;
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::authority::Authority;
use crate::support::eventually;
use crate::support::mail::MailServer;
use crate::support::site::Site;
use crate::support::text_of;

/// Fires and recovers. Returns the two mails.
async fn told_by_mail(server: &MailServer, url: String, authority: Option<&Authority>) -> Vec<Value> {
    let site = Site::start_with(|config| {
        nearby(config);
        config.smtp_url = Some(url.into());
        config.smtp_from = Some("signalbox@example.com".to_owned());
        config.notification_ca_file = authority.map(Authority::file);
    })
    .await;
    let alarms = Alarms::at(&site);
    let body = json!({"name": "mail", "type": "email", "settings": {"to": ["ops@example.com", "two@example.com"]}});
    alarms.post("/notifications/channels", body).await;
    let threshold = alarms.add(Threshold::cpu(90.0).severity("critical")).await;
    let mut probe = Probe::at(&site).await;

    probe.cpu(97.25).await;
    let mails = server.mails(1).await;
    assert_message_id(&alarms, &mails[0]).await;
    probe.cpu(10.0).await;
    alarms.until_only(threshold, "resolved").await;
    server.mails(2).await
}

/// The mail's id identifies a repetition, like the key of a webhook.
async fn assert_message_id(alarms: &Alarms, mail: &Value) {
    let delivery = eventually("it is delivered", async || {
        let deliveries = alarms.read("/notifications/deliveries").await;
        (deliveries[0]["status"] == "sent").then_some(deliveries[0].clone())
    })
    .await;
    let id = text_of(&delivery["message_id"]);
    let text = text_of(&mail["mail"]);
    let header = text.lines().find(|line| line.to_lowercase().starts_with("message-id:")).unwrap();
    assert!(header.contains(&id), "{header} does not name {id}");
}

fn assert_mails(mails: &[Value], tls: bool) {
    let first = text_of(&mails[0]["mail"]);
    assert!(first.contains("97.25") && first.contains("web-1"), "{first}");
    assert_ne!(mails[0]["mail"], mails[1]["mail"]);
    for mail in mails {
        assert_eq!((&mail["tls"], &mail["sender"]), (&json!(tls), &json!("signalbox@example.com")));
        assert_eq!(mail["to"], json!(["ops@example.com", "two@example.com"]));
    }
}

#[actix_web::test]
async fn without_tls() {
    let server = MailServer::plain(json!({})).await;

    let mails = told_by_mail(&server, format!("smtp://localhost:{}?tls=none", server.port), None).await;

    assert_mails(&mails, false);
}

#[actix_web::test]
async fn with_tls_and_a_password() {
    let authority = Authority::new();
    let server = MailServer::secure("smtps", &authority, json!({"user": "ops", "password": "open sesame"})).await;

    let url = format!("smtps://ops:open%20sesame@localhost:{}", server.port);
    let mails = told_by_mail(&server, url, Some(&authority)).await;

    assert_mails(&mails, true);
    assert!(mails.iter().all(|mail| mail["authenticated"] == true), "{mails:?}");
}

#[actix_web::test]
async fn with_starttls() {
    let authority = Authority::new();
    let server = MailServer::secure("starttls", &authority, json!({})).await;

    let url = format!("smtp://localhost:{}", server.port);
    let mails = told_by_mail(&server, url, Some(&authority)).await;

    assert_mails(&mails, true);
}

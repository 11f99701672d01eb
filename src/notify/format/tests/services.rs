//! The complete request for each service.

use serde_json::json;

use super::*;

const LINE: &str = "cpu is 97.3 % on web-1, over 90 % for 5 min";

fn link() -> String {
    format!("https://signalbox.example.com/alerts/{ALERT}")
}

#[test]
fn a_webhook_has_all_fields_and_is_signed() {
    let message = one();
    let request = request(&webhook(), &message);

    let expected = json!({
        "id": MESSAGE,
        "channel": "Night shift",
        "sent_at": "2026-11-21T09:35:00.250Z",
        "alerts": [{
            "event": "triggered",
            "server": {"id": SERVER, "name": "web-1", "tags": ["prod"]},
            "alert": {
                "id": ALERT, "threshold_id": Uuid::from_u128(0x7), "server_id": SERVER, "metric_type": "cpu",
                "series": null, "unit": null,
                "target": null, "worst_target": null, "threshold_value": 90.0, "clear_value": null,
                "comparison": "gt", "duration_seconds": 300, "value": 97.3, "peak_value": 99.0, "status": "active",
                "severity": "critical", "message": LINE, "silenced": false,
                "triggered_at": "2026-11-21T09:00:00.000Z", "acknowledged_at": null, "acknowledged_by": null,
                "resolved_at": null, "resolved_by": null,
            },
        }],
        "text": format!("Critical: web-1\n{LINE}"),
    });
    assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), expected);
    assert_eq!(request.url, "https://example.com/hook");
    assert_eq!(request.headers[0], ("Idempotency-Key", MESSAGE.to_string()));
    assert_eq!(request.headers[1], ("X-Signalbox-Timestamp", "1795254000".to_owned()));
    assert_eq!(request.headers[2].0, "X-Signalbox-Signature");
    assert!(request.secrets.is_empty());
}

#[test]
fn a_signature_equals_that_of_openssl() {
    let signature = webhook::sign("key", "timestamp", b"body");

    // printf 'timestamp.body' | openssl dgst -sha256 -hmac key
    assert_eq!(signature, "5bb9d3497ded7bb240f1c0d15049fc8d7efe2d54dabf1343b6ed0bcc439ca6f9");
}

#[test]
fn a_later_attempt_has_the_same_body_and_another_signature() {
    let attempt = |now: &str| match render(&webhook(), &one(), None, at(now)) {
        Ok(Outgoing::Request(request)) => request,
        _ => panic!("no request"),
    };

    let (first, second) = (attempt("2026-11-21T09:40:00Z"), attempt("2026-11-21T10:40:00Z"));

    assert_eq!(first.body, second.body);
    assert_eq!(first.headers[0], second.headers[0]);
    assert_ne!(first.headers[2], second.headers[2]);
}

#[test]
fn a_webhook_test_names_no_server() {
    let body = body(&webhook(), &message(vec![test_item()]));

    assert_eq!(body["alerts"], json!([{"event": "test", "server": null, "alert": null}]));
}

#[test]
fn slack_gets_an_attachment_with_a_colour() {
    let expected = json!({
        "text": "🔴 Critical: web-1",
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "attachments": [{
            "color": "#d32f2f",
            "fallback": "🔴 Critical: web-1",
            "blocks": [
                {"type": "section", "text": {"type": "plain_text", "text": format!("🔴 {LINE}"), "emoji": false}},
                {"type": "context", "elements": [
                    {"type": "mrkdwn", "text": format!("<{}|Open in Signalbox>", link()), "verbatim": true},
                ]},
            ],
        }],
    });

    assert_eq!(body(&slack(), &one()), expected);
}

#[test]
fn discord_gets_an_embed() {
    let expected = json!({
        "embeds": [{
            "title": "🔴 Critical\\: web\\-1",
            "description": "🔴 cpu is 97.3 % on web\\-1, over 90 % for 5 min",
            "color": 0xd32f2f,
            "url": link(),
        }],
        "allowed_mentions": {"parse": []},
    });

    assert_eq!(body(&discord(), &one()), expected);
}

#[test]
fn teams_gets_an_adaptive_card() {
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [
            {"type": "RichTextBlock", "inlines": [{
                "type": "TextRun", "text": "🔴 Critical: web-1", "weight": "Bolder", "size": "Medium",
                "color": "Attention",
            }]},
            {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": format!("🔴 {LINE}")}]},
        ],
        "actions": [{"type": "Action.OpenUrl", "title": "Open in Signalbox", "url": link()}],
    });
    let expected = json!({
        "type": "message",
        "attachments": [
            {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card},
        ],
    });

    assert_eq!(body(&teams(), &one()), expected);
}

#[test]
fn telegram_gets_html_for_its_chat() {
    let request = request(&telegram(), &one());

    let expected = json!({
        "chat_id": "-100123",
        "text": format!("<b>🔴 Critical: web-1</b>\n🔴 {LINE}\n<a href=\"{}\">Open in Signalbox</a>", link()),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": true},
    });
    assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), expected);
    assert_eq!(request.url, "https://api.telegram.org/bot1:abc/sendMessage");
}

#[test]
fn a_telegram_channel_can_use_another_bot_api() {
    let url = Some("http://bots.example.com:8081/".to_owned());
    let settings = Settings::Telegram { bot_token: "1:abc".to_owned(), chat_id: "1".to_owned(), url };

    assert_eq!(request(&settings, &one()).url, "http://bots.example.com:8081/bot1:abc/sendMessage");
}

#[test]
fn ntfy_gets_a_post_to_its_root_with_the_topic() {
    let request = request(&ntfy(), &one());

    let expected = json!({
        "topic": "alerts",
        "title": "Critical: web-1",
        "message": LINE,
        "priority": 5,
        "tags": ["rotating_light"],
        "click": link(),
    });
    assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), expected);
    assert_eq!(request.url, "https://ntfy.example.com/");
    assert_eq!(request.secrets, [("Authorization", "Bearer tk_secret".to_owned())]);
}

#[test]
fn ntfy_can_be_served_below_a_path() {
    let sent_to = |url: &str| {
        let request = request(&Settings::Ntfy { url: url.to_owned(), token: None }, &one());
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert!(request.secrets.is_empty());
        (request.url, body["topic"].as_str().unwrap().to_owned())
    };

    assert_eq!(sent_to("http://example.com/ntfy/top"), ("http://example.com/ntfy/".to_owned(), "top".to_owned()));
    assert_eq!(sent_to("http://example.com/top/?auth=x"), ("http://example.com/?auth=x".to_owned(), "top".to_owned()));
}

#[test]
fn an_ntfy_url_without_a_topic_is_refused() {
    let unfit = |url: &str| {
        let settings = Settings::Ntfy { url: url.to_owned(), token: None };
        render(&settings, &one(), None, one().at).err()
    };

    assert_eq!(unfit("https://ntfy.example.com/"), Some(Unfit::Topic));
    assert_eq!(unfit("https://ntfy.example.com"), Some(Unfit::Topic));
    assert_eq!(unfit("https://ntfy.example.com/<a topic>"), Some(Unfit::Topic));
    assert_eq!(unfit(&format!("https://ntfy.example.com/{}", "a".repeat(65))), Some(Unfit::Topic));
    assert_eq!(unfit(&format!("https://ntfy.example.com/{}", "a".repeat(64))), None);
    assert_eq!(unfit("ntfy.example.com/alerts"), Some(Unfit::Url));
    assert_eq!(unfit("mailto:alerts"), Some(Unfit::Url));
}

#[test]
fn gotify_gets_its_token_in_a_header() {
    let request = request(&gotify(), &one());

    let expected = json!({
        "title": "🔴 Critical: web-1",
        "message": format!("🔴 {LINE}"),
        "priority": 8,
        "extras": {
            "client::display": {"contentType": "text/plain"},
            "client::notification": {"click": {"url": link()}},
        },
    });
    assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), expected);
    assert_eq!(request.url, "https://gotify.example.com/message");
    assert_eq!(request.secrets, [("X-Gotify-Key", "Asecret".to_owned())]);
}

#[test]
fn a_mail_has_the_same_content_as_text_and_as_html() {
    let mail = mail(&one());

    assert_eq!(mail.to, ["ops@example.com"]);
    assert_eq!(mail.subject, "[Signalbox] Critical: web-1");
    assert_eq!(mail.text, format!("Critical: web-1\n\n🔴 {LINE}\n\n{}\n", link()));
    let expected = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"></head><body>\n\
         <h2 style=\"color: #d32f2f\">Critical: web-1</h2>\n<p>🔴 {LINE} <a href=\"{}\">Open</a></p>\n</body></html>\n",
        link()
    );
    assert_eq!(mail.html, expected);
}

#[test]
fn each_severity_has_its_colour_and_priority() {
    let table = [
        (triggered("info", "a", "x"), "#1976d2", 3, 3, "Accent"),
        (triggered("warning", "a", "x"), "#f57c00", 4, 5, "Warning"),
        (triggered("critical", "a", "x"), "#d32f2f", 5, 8, "Attention"),
        (resolved("a", "x", "recovery"), "#2e7d32", 3, 3, "Good"),
        (test_item(), "#757575", 3, 5, "Default"),
    ];
    for (item, colour, ntfy_priority, gotify_priority, teams_colour) in table {
        let message = message(vec![item]);

        assert_eq!(body(&slack(), &message)["attachments"][0]["color"], colour);
        assert_eq!(body(&ntfy(), &message)["priority"], ntfy_priority);
        assert_eq!(body(&gotify(), &message)["priority"], gotify_priority);
        let card = &body(&teams(), &message)["attachments"][0]["content"];
        assert_eq!(card["body"][0]["inlines"][0]["color"], teams_colour);
    }
}

//! Notes that people add to alerts.

use serde_json::{Value, json};

use super::alerts::open_alert;
use super::of_server;
use crate::support::site::Site;
use crate::support::{assert_timestamp, keys_of};

/// The address of an alert of the site's server.
async fn alerting(site: &Site) -> String {
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    format!("/alerts/{}", open_alert(site, &threshold, "warning").await.id)
}

#[actix_web::test]
async fn a_note_stands_in_the_timeline_of_an_open_and_of_a_resolved_alert() {
    let site = Site::start().await;
    let alert = alerting(&site).await;

    let text = "The backup was late.\nIt is <b>stopped</b>.";
    let noted = site.post(format!("{alert}/notes")).json(json!({"text": text})).expect(200).await;
    let entry = site.last_entry().await;
    site.post(format!("{alert}/resolve")).expect(200).await;
    let later = site.post(format!("{alert}/notes")).json(json!({"text": "Moved to 04:00."})).expect(200).await;

    let note = &noted["timeline"][1];
    assert_eq!(keys_of(note), ["at", "detail", "kind", "user_id", "username"]);
    assert_eq!((&note["kind"], &note["detail"], &note["username"]), (&json!("note"), &json!(text), &json!("owner")));
    assert_eq!(note["user_id"], json!(site.owner.id));
    assert_timestamp(&note["at"]);
    assert_eq!((&entry["action"], &entry["server_id"]), (&json!("alert.note"), &json!(site.server_id)));
    assert!(!entry.to_string().contains("backup"), "the audit log has the text: {entry}");
    let kinds: Vec<&Value> = later["timeline"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, ["triggered", "note", "resolved", "note"]);
    assert_eq!(site.read(&alert).await, later);
}

#[actix_web::test]
async fn blank_long_and_too_many_notes_are_refused() {
    let site = Site::start().await;
    let alert = alerting(&site).await;
    let notes = format!("{alert}/notes");

    for (body, kind) in [
        (json!({}), "value_error.missing"),
        (json!({"text": " \n"}), "value_error.any_str.blank"),
        (json!({"text": "a".repeat(2_001)}), "value_error.any_str.max_length"),
        (json!({"text": "a\u{202e}b"}), "value_error.str.bidi"),
    ] {
        site.post(&notes).json(body).expect_faults(422, &[("body", "text", kind)]).await;
    }
    for _ in 0..100 {
        site.post(&notes).json(json!({"text": "again"})).expect(200).await;
    }

    let full = [("body", "text", "value_error.list.max_items")];
    site.post(&notes).json(json!({"text": "one more"})).expect_faults(422, &full).await;
    assert_eq!(site.read(&alert).await["timeline"].as_array().unwrap().len(), 101);
}

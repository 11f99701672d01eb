//! Who resumes a terminal stands in the audit log before anything changes.

use serde_json::json;

use super::Scene;
use crate::after_the_commit::Lacking;

#[actix_web::test]
async fn a_client_keeps_its_terminal_from_one_whose_entry_cannot_be_written() {
    let scene = Scene::start().await;
    let mut first = scene.open().await;
    first.type_in("echo on''ce\n").await;
    first.until("once\r\n").await;

    let log = Lacking::begin(&scene.site.service, "audit_log").await;
    let refused = scene.refusal(&scene.site.owner, &first.ticket).await;
    first.type_in("echo tw''ice\n").await;
    first.until("twice\r\n").await;
    log.end().await;
    assert_eq!(scene.told().await, ["terminal.open started"]);
    let mut second = scene.resume(first.ticket.clone()).await;

    assert_eq!(refused["code"], "busy", "{refused}");
    assert_eq!(first.socket.until("error").await["code"], json!("terminal_resumed"));
    second.type_in("echo thr''ice\n").await;
    second.until("thrice\r\n").await;
    assert_eq!(scene.told().await, ["terminal.open started", "terminal.resume ok"]);
}

#[actix_web::test]
async fn who_may_not_have_a_terminal_has_an_entry_and_takes_it_from_nobody() {
    let scene = Scene::start().await;
    let guest = scene.site.service.register("guest").await;
    let scope = json!({"server_id": scene.site.server_id});
    let grant = json!({"subject": {"user_id": guest.id}, "scope": scope, "role": "operator", "rights": ["terminal"]});
    scene.site.post("/grants").json(grant).expect(201).await;
    let mut first = scene.open().await;

    let refused = scene.refusal(&guest, &first.ticket).await;
    first.type_in("echo on''ce\n").await;
    first.until("once\r\n").await;

    assert_eq!(refused["code"], "not_found");
    assert_eq!(scene.told().await, ["terminal.open started", "terminal.resume failed: not_found"]);
}

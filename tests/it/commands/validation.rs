//! Malformed requests: every fault is reported, and nothing runs.

use serde_json::json;

use crate::support::commands::answered;
use crate::support::site::Site;

const LONGEST: usize = 32_768;

#[actix_web::test]
async fn an_invalid_body_is_refused_with_the_reason() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let cases = [
        (json!({}), ("command", "value_error.missing")),
        (json!({"command": null}), ("command", "type_error.none.not_allowed")),
        (json!({"command": 5}), ("command", "type_error.str")),
        (json!({"command": ["ls"]}), ("command", "type_error.str")),
        (json!({"command": ""}), ("command", "value_error.any_str.min_length")),
        (json!({"command": "ä".repeat(LONGEST + 1)}), ("command", "value_error.any_str.max_length")),
        (json!({"command": "a\0b"}), ("command", "value_error.str.control")),
        (json!({"command": "a", "timeout_seconds": 0}), ("timeout_seconds", "value_error.number.not_ge")),
        (json!({"command": "a", "timeout_seconds": -1}), ("timeout_seconds", "value_error.number.not_ge")),
        (json!({"command": "a", "timeout_seconds": 3601}), ("timeout_seconds", "value_error.number.not_le")),
        (json!({"command": "a", "timeout_seconds": u64::MAX}), ("timeout_seconds", "value_error.number.not_le")),
        (json!({"command": "a", "timeout_seconds": 1.5}), ("timeout_seconds", "type_error.integer")),
        (json!({"command": "a", "timeout_seconds": "60"}), ("timeout_seconds", "type_error.integer")),
        (json!({"command": "a", "timeout_seconds": true}), ("timeout_seconds", "type_error.integer")),
        (json!({"command": "a", "stdin": 5}), ("stdin", "type_error.str")),
        (json!({"command": "a", "stdin": {}}), ("stdin", "type_error.str")),
        (json!({"command": "a", "stdin": "a\0b"}), ("stdin", "value_error.str.control")),
    ];

    for (body, (field, kind)) in cases {
        site.post(site.commands_path()).json(body).expect_faults(422, &[("body", field, kind)]).await;
    }

    agent.expect_silence(1).await;
    assert!(site.commands().await.is_empty());
}

#[actix_web::test]
async fn every_fault_of_a_request_is_reported_at_once() {
    let site = Site::start().await;
    let body = json!({"timeout_seconds": 0, "stdin": 5});

    let faults = [
        ("path", "server_id", "type_error.uuid"),
        ("query", "wait", "value_error.number.not_le"),
        ("body", "command", "value_error.missing"),
        ("body", "timeout_seconds", "value_error.number.not_ge"),
        ("body", "stdin", "type_error.str"),
    ];
    site.post("/commands/web-1?wait=91").json(body).expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn a_body_that_is_no_json_object_is_reported() {
    let site = Site::start().await;
    let path = site.commands_path();

    site.post(&path).raw("application/json", "{").expect_faults(422, &[("body", "", "value_error.jsondecode")]).await;
    site.post(&path).json(json!(["ls"])).expect_faults(422, &[("body", "", "type_error.dict")]).await;
    site.post(&path)
        .form(&[("command", "ls")])
        .expect_some_faults(422, &[("header.Content-Type", "value_error.content_type")])
        .await;
    site.post(&path).expect(422).await;
    let huge = json!({"command": "cat", "stdin": "x".repeat(1 << 20)});
    site.post(&path).json(huge).expect_error(413, "payload_too_large").await;
}

#[actix_web::test]
async fn an_invalid_wait_is_reported() {
    let site = Site::start().await;

    for (wait, kind) in [
        ("91", "value_error.number.not_le"),
        ("-1", "value_error.number.not_ge"),
        ("soon", "type_error.integer"),
        ("1.5", "type_error.integer"),
    ] {
        let call = site.post(format!("{}?wait={wait}", site.commands_path())).json(json!({"command": "true"}));
        call.expect_faults(422, &[("query", "wait", kind)]).await;
    }
}

#[actix_web::test]
async fn invalid_ids_are_reported() {
    let site = Site::start().await;
    let path = format!("{}/first", site.commands_path());

    let fault = [("path", "command_id", "type_error.uuid")];
    site.service.client.get(&path).bearer(&site.owner.token).expect_faults(422, &fault).await;
    site.post(format!("{path}/cancel")).expect_faults(422, &fault).await;
}

#[actix_web::test]
async fn the_longest_command_and_timeout_reach_the_agent_whole() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let command = "漢".repeat(LONGEST);
    let stdin = "y\n".repeat(200_000);

    let body = json!({"command": command, "timeout_seconds": 3600, "stdin": stdin});
    let pending = site.run_body("?wait=90", body);
    let execute = agent.expect_execute().await;
    agent.finish(execute.command_id).await;

    assert!(execute.command == command && execute.stdin.as_ref() == Some(&stdin));
    assert_eq!(execute.timeout_seconds, 3600);
    assert_eq!(answered(pending).await.status, 200);
}

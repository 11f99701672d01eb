//! Bad bodies, on any route: malformed, missing, of another type or hostile.

use serde_json::{Value, json};

use crate::support::rest::faults_of;
use crate::support::{Account, Call, TestService, text_of};

async fn signed_in() -> (TestService, Account) {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    (service, account)
}

fn create_server(service: &TestService, account: &Account) -> Call {
    service.client.post("/servers").bearer(&account.token)
}

/// Asserts that the body as a whole is the only fault. Returns its type.
async fn fault_of_body(call: Call) -> String {
    let faults = faults_of(&call.expect(422).await);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].0, "body");
    faults[0].1.clone()
}

#[actix_web::test]
async fn malformed_json_is_named_so() {
    let (service, account) = signed_in().await;
    let deep = "[".repeat(100_000);

    for body in ["{\"name\": \"web", "{\"name\": }", "name=web-1", "{} {}", "{'name': 1}", "\u{0}", &deep] {
        let call = create_server(&service, &account).raw("application/json", body.to_owned());
        call.expect_faults(422, &[("body", "", "value_error.jsondecode")]).await;
    }
    let not_utf8 = create_server(&service, &account).raw("application/json", b"{\"name\": \"\xff\"}".to_vec());
    not_utf8.expect_faults(422, &[("body", "", "value_error.jsondecode")]).await;
}

#[actix_web::test]
async fn a_missing_body_is_a_fault_of_the_body() {
    let (service, account) = signed_in().await;

    fault_of_body(create_server(&service, &account)).await;
    fault_of_body(create_server(&service, &account).raw("application/json", "")).await;
    fault_of_body(service.client.post("/auth/register")).await;
}

#[actix_web::test]
async fn a_body_that_is_no_object_has_the_wrong_type() {
    let (service, account) = signed_in().await;

    for body in [json!([]), json!("web-1"), json!(7), json!(true), Value::Null] {
        let kind = fault_of_body(create_server(&service, &account).json(body)).await;
        assert!(kind.starts_with("type_error."), "{kind}");
    }
}

#[actix_web::test]
async fn a_body_of_another_content_type_is_refused() {
    let (service, account) = signed_in().await;
    let body = json!({"name": "web-1", "host": "192.0.2.10"}).to_string();

    for content_type in ["text/plain", "application/xml", "application/x-www-form-urlencoded", "nonsense"] {
        let call = create_server(&service, &account).raw(content_type, body.clone());
        let answer = call.expect(422).await;
        assert_eq!(faults_of(&answer).len(), 1, "{answer}");
    }
    create_server(&service, &account).raw("application/json; charset=utf-8", body.clone()).expect(201).await;
    create_server(&service, &account).raw("Application/JSON", body).expect(201).await;
}

#[actix_web::test]
async fn unknown_fields_are_ignored() {
    let (service, account) = signed_in().await;
    let body = json!({"name": "web-1", "host": "192.0.2.10", "colour": {"deep": [1, 2]}, "": null});

    create_server(&service, &account).json(body).expect(201).await;
}

#[actix_web::test]
async fn numbers_beyond_every_type_are_a_fault_of_their_field() {
    let (service, account) = signed_in().await;

    for number in ["99999999999999999999", "-99999999999999999999", "1e400", "1e3000"] {
        let body = format!(r#"{{"name": "web-1", "host": "192.0.2.10", "port": {number}}}"#);
        let answer = create_server(&service, &account).raw("application/json", body).expect(422).await;
        let faults = faults_of(&answer);
        // No JSON parser can represent some of these, so the body may be at fault.
        assert!(faults.len() == 1 && ["body.port", "body"].contains(&faults[0].0.as_str()), "{number}: {answer}");
    }
}

#[actix_web::test]
async fn hostile_text_never_becomes_an_error_of_the_service() {
    let (service, account) = signed_in().await;
    let server_id = service.server(&account, "web-1").await;
    let hostile = ["a\0b", "\u{202e}gnp.exe", "'; DROP TABLE users; --", "<script>", "\u{fffe}", "{{7*7}}", "\\x00\\"];

    for text in hostile {
        let bearer = |call: Call| call.bearer(&account.token);
        let calls = [
            service.client.post("/auth/login").form(&[("username", text), ("password", text)]),
            bearer(service.client.put("/auth/me")).json(json!({"full_name": text})),
            bearer(service.client.put("/auth/me")).json(json!({"username": text, "email": text})),
            bearer(service.client.post("/servers")).json(json!({"name": text, "host": "a", "description": text})),
            bearer(service.client.post("/servers")).json(json!({"name": "b", "host": text, "tags": [text]})),
            bearer(service.client.get("/servers")).query(&[("q", text), ("tag", text)]),
            bearer(service.client.get("/servers")).query(&[("status", text), ("limit", text)]),
            bearer(service.client.post("/api-keys")).json(json!({"server_id": server_id, "name": text})),
            bearer(service.client.get(format!("/metrics/{server_id}/history"))).query(&[("start", text)]),
            bearer(service.client.get(format!("/metrics/{server_id}/series"))).query(&[("names", text)]),
            bearer(service.client.get("/metrics/fleet")).query(&[("names", text), ("q", text), ("tag", text)]),
        ];

        for call in calls {
            let answer = call.send().await;
            assert!([200, 201, 401, 422].contains(&answer.status), "{text:?}: {answer}");
        }
    }
}

#[actix_web::test]
async fn text_comes_back_as_it_was_sent() {
    let (service, account) = signed_in().await;
    let text = "Ünï \u{1F5A5} \"quoted\" \\ <b> '; --";

    let body = json!({"name": text, "host": "192.0.2.10", "description": text});
    let server = create_server(&service, &account).json(body).expect(201).await;

    assert_eq!((text_of(&server["name"]), text_of(&server["description"])), (text.to_owned(), text.to_owned()));
}

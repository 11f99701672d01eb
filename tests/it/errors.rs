//! The form of every error: unknown paths, wrong methods, bodies that are too large, and missing rights.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::support::{PASSWORD, TestService, in_time};

const MEBIBYTE: usize = 1024 * 1024;

#[actix_web::test]
async fn an_unknown_path_is_answered_in_the_shape_of_errors() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    for path in ["/nothing", "/servers/1/2/3", "/auth", "/auth/nothing", "/metrics", "/%00", "/%ff"] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            service.client.call(method, path).bearer(&account.token).expect_error(404, "not_found").await;
        }
    }
    for path in ["/nothing", "/api", "/api/v2/servers", "/api-keys", "/auth/login"] {
        service.root.post(path).expect_error(404, "not_found").await;
    }
}

#[actix_web::test]
async fn a_wrong_method_is_answered_in_the_shape_of_errors() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let id = Uuid::now_v7();
    let cases = [
        (Method::GET, "/auth/login".to_owned()),
        (Method::POST, "/auth/me".to_owned()),
        (Method::PUT, "/servers".to_owned()),
        (Method::PATCH, "/servers".to_owned()),
        (Method::POST, format!("/servers/{id}")),
        (Method::POST, format!("/metrics/{id}")),
        (Method::GET, format!("/api-keys/{id}")),
        (Method::POST, "/agents/ws".to_owned()),
    ];

    for (method, path) in cases {
        service.client.call(method, &path).bearer(&account.token).expect_refusal(405).await;
    }
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        service.root.delete(path).expect_refusal(405).await;
    }
}

#[actix_web::test]
async fn a_body_over_a_mebibyte_is_too_large() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    // Unknown fields are ignored, so that only the size is wrong.
    let body_of = |length: usize| {
        let body = json!({"name": "web-1", "host": "192.0.2.10", "padding": ""}).to_string();
        body.replace(r#""padding":"""#, &format!(r#""padding":"{}""#, "x".repeat(length - body.len())))
    };
    let create = |body: String| service.client.post("/servers").bearer(&account.token).raw("application/json", body);

    create(body_of(MEBIBYTE)).expect(201).await;
    create(body_of(MEBIBYTE + 1)).expect_refusal(413).await;
    let form = format!("username=alice&password={PASSWORD}&padding={}", "x".repeat(MEBIBYTE));
    service.client.post("/auth/login").raw("application/x-www-form-urlencoded", form).expect_refusal(413).await;
}

#[actix_web::test]
async fn a_body_of_undeclared_length_has_the_same_limit() {
    let service = TestService::start().await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let head = "POST /api/v1/auth/register HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x1_0000));

    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..17 {
        // A client that is already refused may find the connection closed.
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut status_line = [0; 12];
    in_time("the answer to a large body", stream.read_exact(&mut status_line)).await.unwrap();

    assert_eq!(String::from_utf8_lossy(&status_line), "HTTP/1.1 413");
}

#[actix_web::test]
async fn every_answer_has_a_request_id_of_its_own() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let calls = [
        service.client.get("/servers").bearer(&account.token),
        service.client.get("/servers").bearer(&account.token),
        service.client.get("/servers"),
        service.client.get("/servers/1").bearer(&account.token),
        service.client.get("/nothing"),
        service.client.post("/auth/login").form(&[]),
        service.root.get("/healthz"),
        service.root.get("/docs"),
    ];
    let expected = calls.len();
    let mut ids = BTreeSet::new();

    for call in calls {
        ids.insert(call.send().await.header("X-Request-Id").to_owned());
    }

    assert_eq!(ids.len(), expected);
    assert!(!ids.contains(""));
}

#[actix_web::test]
async fn everything_private_needs_a_token() {
    let service = TestService::start().await;
    let id = Uuid::now_v7();
    let calls = [
        (Method::GET, "/auth/me".to_owned()),
        (Method::PUT, "/auth/me".to_owned()),
        (Method::POST, "/auth/change-password".to_owned()),
        (Method::POST, "/auth/logout".to_owned()),
        (Method::GET, "/auth/sessions".to_owned()),
        (Method::DELETE, format!("/auth/sessions/{id}")),
        (Method::GET, "/servers".to_owned()),
        (Method::POST, "/servers".to_owned()),
        (Method::GET, format!("/servers/{id}")),
        (Method::PUT, format!("/servers/{id}")),
        (Method::DELETE, format!("/servers/{id}")),
        (Method::GET, format!("/metrics/{id}")),
        (Method::GET, format!("/metrics/{id}/history")),
        (Method::GET, format!("/metrics/{id}/series")),
        (Method::GET, "/metrics/fleet".to_owned()),
        (Method::GET, "/metrics/fleet/heat".to_owned()),
        (Method::GET, "/events".to_owned()),
        (Method::GET, "/api-keys/me".to_owned()),
        (Method::POST, "/api-keys".to_owned()),
        (Method::DELETE, format!("/api-keys/{id}")),
    ];

    for (method, path) in calls {
        let body = json!({"name": "web-1", "host": "192.0.2.10", "server_id": id, "current_password": PASSWORD,
            "new_password": PASSWORD});
        service.client.call(method, &path).json(body).expect_refusal(401).await;
    }
}

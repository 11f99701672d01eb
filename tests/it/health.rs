//! `/healthz`, `/readyz` and the service's own `/metrics`.

use serde_json::json;

use crate::support::{TestService, registration};

#[actix_web::test]
async fn a_running_service_is_alive_and_ready() {
    let service = TestService::start().await;

    service.root.get("/healthz").expect_answer(200).await;
    service.root.get("/readyz").expect_answer(200).await;
}

#[actix_web::test]
async fn the_metrics_are_prometheus_text() {
    let service = TestService::start().await;
    service.client.post("/auth/register").json(registration("alice")).expect(201).await;

    let answer = service.root.get("/metrics").expect_answer(200).await;

    assert!(answer.header("Content-Type").starts_with("text/plain"), "{:?}", answer.headers);
    assert!(answer.text.contains("# TYPE "), "{answer}");
    for typed in answer.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = typed.split(' ').next().unwrap();
        assert!(answer.text.contains(&format!("# HELP {name} ")), "{name}: {answer}");
    }
    let samples = answer.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in samples {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with(|letter: char| letter.is_ascii_alphabetic()), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[actix_web::test]
async fn nothing_of_a_users_data_is_in_the_open_pages() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body = json!({"name": "lighthouse", "host": "lighthouse.example.com"});
    let server = service.client.post("/servers").bearer(&account.token).json(body).expect(201).await;

    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = service.root.get(path).expect_answer(200).await;
        for private in ["alice", "lighthouse", server["id"].as_str().unwrap()] {
            assert!(!answer.text.contains(private), "{answer}");
        }
    }
}

//! `GET /logs/{server_id}`: the agent's request, and how its answer is returned.

use actix_web::rt;
use serde_json::{Value, json};
use signalbox_protocol::agent::{Request, RequestError};

use crate::support::agent::FakeAgent;
use crate::support::site::Site;

/// Searches while `agent` answers with `outcome`. Returns the status, the body, and the agent's request.
async fn search(
    site: &Site,
    agent: &mut FakeAgent,
    query: &str,
    outcome: Result<Value, RequestError>,
) -> (u16, Value, Request) {
    let call = site.service.client.get(format!("/logs/{}?{query}", site.server_id)).bearer(&site.owner.token);
    let answer = rt::spawn(call.send());
    let request = agent.expect_request().await;
    agent.answer(&request, outcome).await;
    let answer = answer.await.unwrap();
    (answer.status, answer.json(), request)
}

#[actix_web::test]
async fn the_agent_is_asked_and_its_lines_are_the_answer() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let lines = json!([
        {"timestamp": "2026-11-20T09:30:00.000Z", "stream": "sshd", "message": "an error"},
        {"timestamp": null, "stream": null, "message": "another error"},
    ]);
    let found = json!({"lines": lines, "truncated": true, "stopped_at": "2026-11-20T09:00:00.000Z"});

    let query = "source=file&path=/var/log/app.log&since=2026-11-20T10:00:00%2B01:00&until=2026-11-20T10:00:00Z\
                 &tail=5&q=err.r&regex=true";
    let (status, body, request) = search(&site, &mut agent, query, Ok(found.clone())).await;

    assert_eq!((status, body), (200, found));
    let expected = json!({
        "source": "file", "path": "/var/log/app.log", "container_id": null, "since": "2026-11-20T09:00:00.000Z",
        "until": "2026-11-20T10:00:00.000Z", "tail": 5, "q": "err.r", "regex": true,
    });
    assert_eq!((request.method.as_str(), request.params), ("logs.query", expected));
    assert_eq!(request.by.as_deref(), Some("owner from 127.0.0.1"));
}

#[actix_web::test]
async fn the_systems_last_hundred_lines_are_the_default() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let (status, body, request) = search(&site, &mut agent, "", Ok(json!({"lines": []}))).await;

    assert_eq!((status, body), (200, json!({"lines": [], "truncated": false, "stopped_at": null})));
    let expected = json!({
        "source": "system", "path": null, "container_id": null, "since": null, "until": null, "tail": 100, "q": null,
        "regex": false,
    });
    assert_eq!(request.params, expected);
}

#[actix_web::test]
async fn refusals_of_the_agent_are_reported() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let cases = [
        ("agent_refused", 400, json!("agent_refused")),
        ("path_not_allowed", 400, json!("agent_refused")),
        ("not_found", 404, json!("not_found")),
    ];

    for (code, expected, told) in cases {
        let refusal = RequestError::new(code, "for this reason");
        let (status, body, _) = search(&site, &mut agent, "", Err(refusal)).await;
        assert_eq!((status, &body["code"], &body["detail"]), (expected, &told, &json!("for this reason")), "{code}");
    }
}

#[actix_web::test]
async fn a_pattern_that_cannot_be_used_is_a_fault_of_the_request() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let refusal = RequestError::new("invalid_pattern", "unclosed group");

    let (status, body, _) = search(&site, &mut agent, "q=(&regex=true", Err(refusal)).await;

    let fault = json!({"loc": ["query", "q"], "msg": "unclosed group", "type": "value_error.regex"});
    assert_eq!((status, body), (422, json!({"detail": [fault], "status_code": 422})));
}

#[actix_web::test]
async fn an_invalid_answer_and_an_absent_agent_are_reported() {
    let site = Site::start().await;
    let path = format!("/logs/{}", site.server_id);
    site.service.client.get(&path).bearer(&site.owner.token).expect_error(400, "agent_offline").await;
    let mut agent = site.agent().await;

    let (status, body, _) = search(&site, &mut agent, "", Ok(json!({"lines": "many"}))).await;

    assert_eq!((status, &body["code"]), (400, &json!("agent_error")));
    let backwards = format!("{path}?since=2026-11-20T10:00:00Z&until=2026-11-20T09:00:00Z");
    assert_eq!(site.service.client.get(backwards).bearer(&site.owner.token).send().await.status, 422);
}

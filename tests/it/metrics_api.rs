//! `GET /metrics/{server_id}` and its history without an agent: who may read, and what a range may be.
//! The values are tested in `agent_metrics`.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::rest::faults_of;
use crate::support::{Account, TestService};

const READINGS: [&str; 3] = ["", "/history", "/series"];

/// A service with a server that has never reported.
async fn silent_server() -> (TestService, Account, Uuid) {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let server_id = service.server(&account, "web-1").await;
    (service, account, server_id)
}

#[actix_web::test]
async fn there_is_no_latest_sample_before_the_first() {
    let (service, account, server_id) = silent_server().await;

    let call = service.client.get(format!("/metrics/{server_id}")).bearer(&account.token);

    call.expect_error(404, "no_metrics").await;
}

#[actix_web::test]
async fn the_history_of_a_silent_server_is_empty() {
    let (service, account, server_id) = silent_server().await;

    let call = service.client.get(format!("/metrics/{server_id}/history")).bearer(&account.token);
    let answer = call.expect_answer(200).await;

    assert_eq!(answer.json(), json!([]));
    assert!(answer.header("X-Resolution-Seconds").parse::<f64>().is_ok(), "{:?}", answer.headers);
}

#[actix_web::test]
async fn the_series_of_a_silent_server_are_empty() {
    let (service, account, server_id) = silent_server().await;

    let series = service.client.get(format!("/metrics/{server_id}/series")).bearer(&account.token).expect(200).await;

    assert!(series["resolution_seconds"].is_number(), "{series}");
    assert!(series["timestamps"].is_array() && series["series"].is_object(), "{series}");
}

#[actix_web::test]
async fn another_users_metrics_do_not_exist() {
    let (service, _, server_id) = silent_server().await;
    let bob = service.register("bob").await;

    for reading in READINGS {
        for id in [server_id, Uuid::now_v7()] {
            let call = service.client.get(format!("/metrics/{id}{reading}")).bearer(&bob.token);
            call.expect_error(404, "not_found").await;
        }
    }
}

#[actix_web::test]
async fn an_id_that_is_none_is_a_fault_of_the_path() {
    let (service, account, _) = silent_server().await;

    for reading in READINGS {
        let call = service.client.get(format!("/metrics/web-1{reading}")).bearer(&account.token);
        call.expect_faults(422, &[("path", "server_id", "type_error.uuid")]).await;
    }
}

#[actix_web::test]
async fn ranges_within_their_limits_are_taken() {
    let (service, account, server_id) = silent_server().await;
    let mut queries: Vec<Vec<(&str, &str)>> = vec![
        vec![("start", "2026-11-20T09:00:00Z"), ("end", "2026-11-20T10:00:00Z")],
        vec![("start", "2026-11-20T09:00:00.123+05:30"), ("end", "2026-11-20T10:00:00-08:00")],
        vec![("start", "2026-11-20T09:00:00Z")],
        vec![("end", "2026-11-20T09:00:00Z")],
        vec![("max_points", "1")],
        vec![("max_points", "20000")],
    ];
    queries.extend(["auto", "raw", "1m", "15m", "1h"].map(|resolution| vec![("resolution", resolution)]));

    for query in queries {
        for reading in ["history", "series"] {
            let call = service.client.get(format!("/metrics/{server_id}/{reading}")).bearer(&account.token);
            call.query(&query).expect(200).await;
        }
    }
}

#[actix_web::test]
async fn a_parameter_beyond_its_limits_is_the_one_fault() {
    let (service, account, server_id) = silent_server().await;
    let cases = [
        ("start", "yesterday", "*"),
        ("end", "1795167330x", "*"),
        ("resolution", "2m", "*"),
        ("resolution", "", "*"),
        ("max_points", "0", "value_error.*"),
        ("max_points", "20001", "value_error.*"),
        ("max_points", "-5", "value_error.*"),
        ("max_points", "all", "type_error.integer"),
    ];

    for (parameter, value, kind) in cases {
        for reading in ["history", "series"] {
            let call = service.client.get(format!("/metrics/{server_id}/{reading}")).bearer(&account.token);
            call.query(&[(parameter, value)]).expect_faults(422, &[("query", parameter, kind)]).await;
        }
    }
}

#[actix_web::test]
async fn a_range_ends_after_its_start() {
    let (service, account, server_id) = silent_server().await;
    let query = [("start", "2026-11-20T10:00:00Z"), ("end", "2026-11-20T09:59:59Z")];

    for reading in ["history", "series"] {
        let call = service.client.get(format!("/metrics/{server_id}/{reading}")).bearer(&account.token);
        let faults: Vec<(String, String)> = faults_of(&call.query(&query).expect(422).await);

        assert_eq!(faults.len(), 1);
        assert!(faults[0].0.starts_with("query"), "{faults:?}");
        assert!(faults[0].1.starts_with("value_error."), "{faults:?}");
    }
}

#[actix_web::test]
async fn a_reversed_range_is_a_fault_beside_others() {
    let (service, account, server_id) = silent_server().await;
    let query = [("start", "2026-11-20T10:00:00Z"), ("end", "2026-11-20T09:59:59Z"), ("max_points", "0")];
    let faults = [("query", "end", "value_error.range"), ("query", "max_points", "value_error.number.not_ge")];

    for reading in ["history", "series"] {
        let call = service.client.get(format!("/metrics/{server_id}/{reading}")).bearer(&account.token);
        call.query(&query).expect_faults(422, &faults).await;
    }
}

#[actix_web::test]
async fn all_faults_of_path_and_query_come_in_one_answer() {
    let (service, account, _) = silent_server().await;
    let query = [("start", "x"), ("end", "y"), ("resolution", "z"), ("max_points", "0")];
    let faults = [
        ("path", "server_id", "type_error.uuid"),
        ("query", "start", "*"),
        ("query", "end", "*"),
        ("query", "resolution", "*"),
        ("query", "max_points", "value_error.*"),
    ];

    let call = service.client.get("/metrics/nonsense/history").bearer(&account.token).query(&query);

    let body: Value = call.expect_faults(422, &faults).await;
    assert_eq!(body["detail"].as_array().unwrap().len(), faults.len());
}

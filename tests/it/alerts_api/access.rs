//! Who may read and change: another user's thresholds, silences, alerts and servers do not exist.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::alerts::open_alert;
use super::{of_server, silence_path, threshold_path};
use crate::support::site::Site;
use crate::support::{Account, text_of};

fn silence_of(server_id: Uuid) -> Value {
    json!({"server_id": server_id, "ends_at": signalbox_protocol::Timestamp::now().plus_millis(3_600_000)})
}

/// The calls about one threshold, one silence and one alert.
fn calls(threshold: &str, silence: &str, alert: &str) -> Vec<(Method, String, Value)> {
    let mut calls = Vec::new();
    for (path, change) in [(threshold, json!({"enabled": false})), (silence, json!({"reason": "b"}))] {
        calls.push((Method::GET, path.to_owned(), Value::Null));
        calls.push((Method::PUT, path.to_owned(), change));
        calls.push((Method::DELETE, path.to_owned(), Value::Null));
    }
    calls.push((Method::GET, alert.to_owned(), Value::Null));
    calls.push((Method::POST, format!("{alert}/acknowledge"), Value::Null));
    calls.push((Method::POST, format!("{alert}/resolve"), Value::Null));
    calls.push((Method::POST, format!("{alert}/notes"), json!({"text": "a"})));
    calls
}

/// The lists, and the calls that create something.
fn lists(server_id: Uuid) -> Vec<(Method, String, Value)> {
    vec![
        (Method::GET, "/alerts".to_owned(), Value::Null),
        (Method::GET, "/alerts/summary".to_owned(), Value::Null),
        (Method::GET, "/alerts/thresholds".to_owned(), Value::Null),
        (Method::POST, "/alerts/thresholds".to_owned(), of_server(server_id)),
        (Method::GET, "/alerts/silences".to_owned(), Value::Null),
        (Method::POST, "/alerts/silences".to_owned(), silence_of(server_id)),
    ]
}

async fn expect_all(site: &Site, account: Option<&Account>, calls: &[(Method, String, Value)], status: u16) {
    for (method, path, body) in calls {
        let call = site.service.client.call(method.clone(), path);
        let call = if body.is_null() { call } else { call.json(body.clone()) };
        let call = if let Some(account) = account { call.bearer(&account.token) } else { call };
        call.expect_refusal(status).await;
    }
}

#[actix_web::test]
async fn somebody_elses_things_and_unknown_ones_are_not_found() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    let template = site.new_threshold(json!({"all": true, "metric_type": "container_state"})).await;
    let silence = site.new_silence(silence_of(site.server_id)).await;
    let alert = format!("/alerts/{}", open_alert(&site, &threshold, "warning").await.id);

    for threshold in [&threshold, &template] {
        let theirs = calls(&threshold_path(threshold), &silence_path(&silence), &alert);
        expect_all(&site, Some(&stranger), &theirs, 404).await;
    }
    let id = Uuid::now_v7();
    let unknown =
        calls(&format!("/alerts/thresholds/{id}"), &format!("/alerts/silences/{id}"), &format!("/alerts/{id}"));
    expect_all(&site, Some(&site.owner), &unknown, 404).await;

    assert_eq!(site.read(&threshold_path(&threshold)).await, threshold);
    assert_eq!(site.read(&silence_path(&silence)).await["reason"], "");
    assert_eq!(site.read(&alert).await["status"], "active");
}

#[actix_web::test]
async fn nothing_is_made_for_somebody_elses_server_or_an_unknown_one() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;

    for server_id in [site.server_id, Uuid::now_v7(), Uuid::nil()] {
        for (path, body) in [("/alerts/thresholds", of_server(server_id)), ("/alerts/silences", silence_of(server_id))]
        {
            let call = site.service.client.post(path).bearer(&stranger.token);
            call.json(body).expect_error(404, "not_found").await;
        }
    }
}

#[actix_web::test]
async fn everybody_lists_their_own() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    site.new_silence(silence_of(site.server_id)).await;
    open_alert(&site, &threshold, "warning").await;

    for path in ["/alerts", "/alerts/thresholds", "/alerts/silences"] {
        for path in [path.to_owned(), format!("{path}?server_id={}", site.server_id)] {
            let theirs = site.service.client.get(&path).bearer(&stranger.token).expect_answer(200).await;
            assert_eq!((theirs.json(), theirs.header("X-Total-Count")), (json!([]), "0"), "{path}");
            assert_eq!(site.listed(&path).await.1, "1", "{path}");
        }
    }
    let theirs = site.service.client.get("/alerts/summary").bearer(&stranger.token).expect(200).await;
    assert_eq!((&theirs["total"], &theirs["servers"]), (&json!(0), &json!([])));
}

#[actix_web::test]
async fn without_a_token_there_is_nothing() {
    let site = Site::start().await;
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    let silence = site.new_silence(silence_of(site.server_id)).await;
    let alert = format!("/alerts/{}", text_of(&threshold["id"]));

    let mut all = calls(&threshold_path(&threshold), &silence_path(&silence), &alert);
    all.extend(lists(site.server_id));
    expect_all(&site, None, &all, 401).await;
    let key = Account { token: site.key.clone(), ..site.owner.clone() };
    expect_all(&site, Some(&key), &all, 401).await;
}

//! `/docker` with an agent that answers as the test requires: its requests, and the results of its answers.

use std::time::Instant;

use actix_web::rt::{self, task::JoinHandle};
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentMessage, Event, RequestError, ServiceMessage};
use signalbox_protocol::container::{ContainerState, ContainerStates};
use signalbox_protocol::sample::{ContainerUsage, Sample};
use uuid::Uuid;

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::site::Site;
use crate::support::{Answer, Call, in_time};

fn path(site: &Site, rest: &str) -> String {
    format!("/docker/{}/containers{rest}", site.server_id)
}

fn get(site: &Site, rest: &str) -> Call {
    site.service.client.get(path(site, rest)).bearer(&site.owner.token)
}

fn post(site: &Site, rest: &str) -> Call {
    site.service.client.post(path(site, rest)).bearer(&site.owner.token)
}

/// The agent's request that a call causes, and the service's response to its answer.
async fn exchange(agent: &mut FakeAgent, call: Call, answer: Result<Value, RequestError>) -> (Value, Answer) {
    let waiting: JoinHandle<Answer> = rt::spawn(async move { call.send().await });
    let request = agent.expect_request().await;
    agent.answer(&request, answer).await;
    let asked = json!({"method": request.method, "params": request.params, "by": request.by});
    (asked, in_time("the answer", waiting).await.unwrap())
}

#[actix_web::test]
async fn each_route_asks_for_its_own_method() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let acted = json!({"container_id": "75af", "state": "running"});
    let (by, asker) = ("owner from 127.0.0.1", json!({"user": "owner"}));

    for verb in ["start", "stop", "restart", "pause", "unpause"] {
        let (asked, answer) = exchange(&mut agent, post(&site, &format!("/web/{verb}")), Ok(acted.clone())).await;

        let params = json!({"container_id": "web", "asker": asker});
        assert_eq!(asked, json!({"method": format!("docker.{verb}"), "params": params, "by": by}));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json(), json!({"container_id": "75af", "action": verb, "state": "running"}));
    }
    let (asked, _) = exchange(&mut agent, post(&site, "/web/stop?timeout_seconds=0"), Ok(acted)).await;
    assert_eq!(asked["params"], json!({"container_id": "web", "timeout_seconds": 0, "asker": asker}));

    let lines = json!({"lines": [{"timestamp": "2026-11-20T09:30:00.123Z", "stream": "stderr", "message": "x"}]});
    let (asked, answer) = exchange(&mut agent, get(&site, "/web/logs?tail=7&stdout=0"), Ok(lines)).await;
    let params = json!({"container_id": "web", "tail": 7, "stdout": false, "stderr": true});
    assert_eq!(asked, json!({"method": "docker.logs", "params": params, "by": null}));
    let expected = json!({
        "container_id": "web", "logs": "x\n", "truncated": false,
        "lines": [{"timestamp": "2026-11-20T09:30:00.123Z", "stream": "stderr", "message": "x"}],
    });
    assert_eq!(answer.json(), expected);
}

#[actix_web::test]
async fn the_audit_log_names_the_container() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let usage = ContainerUsage { id: "75af0b12".to_owned(), name: "postgres".to_owned(), ..ContainerUsage::default() };
    agent.store(1, vec![Sample { containers: vec![usage], ..sample_aged(0) }]).await;
    let acted = |name: &str| json!({"container_id": "75af0b12", "state": "running", "name": name});

    exchange(&mut agent, post(&site, "/75af0b12/restart"), Ok(acted("postgres"))).await;
    exchange(&mut agent, post(&site, "/0badcafe/start"), Ok(acted("backup"))).await;

    let entries = site.service.client.get("/audit?action=container").bearer(&site.owner.token).expect(200).await;
    let entries: Vec<&Value> = entries.as_array().unwrap().iter().rev().collect();
    let told: Vec<Value> = entries.iter().map(|it| json!([it["outcome"], it["detail"]["name"]])).collect();
    // A stopped container is in no sample: its name is known when the engine has answered.
    let expected = json!([["started", "postgres"], ["ok", "postgres"], ["started", null], ["ok", "backup"],]);
    assert_eq!(Value::from(told), expected);
    let orders: Vec<&Value> = entries.iter().map(|it| &it["detail"]["order_id"]).collect();
    assert!(orders[0].is_string() && orders[0] == orders[1] && orders[2] == orders[3] && orders[0] != orders[2]);
}

#[actix_web::test]
async fn a_list_has_the_apis_own_form() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let container = json!({
        "id": "75af", "name": "web", "image": "nginx", "state": "running", "status": "Up 4 seconds",
        "created_at": "2026-11-20T09:30:00Z", "labels": {"a": "b"},
        "ports": [{"private_port": 80, "public_port": 8080, "protocol": "tcp", "host_ip": "0.0.0.0"}],
    });
    let mut answered = container.clone();
    answered["environment"] = json!(["TOKEN=secret"]);

    let (asked, answer) = exchange(&mut agent, get(&site, ""), Ok(json!([answered]))).await;

    assert_eq!((&asked["method"], &asked["params"]), (&json!("docker.list"), &json!({"all": true})));
    let mut expected = container;
    expected["created_at"] = json!("2026-11-20T09:30:00.000Z");
    assert_eq!(answer.json(), json!([expected]));
}

#[actix_web::test]
async fn a_list_comes_in_pages_newest_first() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let container = |id: &str, created_at: &str| {
        json!({
            "id": id, "name": id, "image": "nginx", "state": "running", "status": "Up", "created_at": created_at,
        })
    };
    let (earlier, later) = ("2026-11-20T09:30:00Z", "2026-11-20T09:30:01Z");
    let some =
        json!([container("b", earlier), container("d", earlier), container("c", later), container("a", earlier)]);
    let many: Vec<Value> = (0..101).map(|number| container(&format!("{number:03}"), earlier)).collect();
    let mut ask = async |query: &str, containers: &Value| {
        let (asked, answer) = exchange(&mut agent, get(&site, query), Ok(containers.clone())).await;
        let page = answer.json();
        let ids: Vec<&str> = page.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
        (ids.join(" "), answer.header("X-Total-Count").to_owned(), asked["params"].clone())
    };

    for (query, ids, all) in [
        ("", "c a b d", true),
        ("?limit=1", "c", true),
        ("?limit=2&offset=1", "a b", true),
        ("?limit=500&offset=3&all=false", "d", false),
        ("?offset=4", "", true),
        ("?offset=9007199254740991", "", true),
    ] {
        let expected = (ids.to_owned(), "4".to_owned(), json!({ "all": all }));
        assert_eq!(ask(query, &some).await, expected, "{query}");
    }
    let (ids, total, _) = ask("", &Value::from(many)).await;
    assert_eq!((ids.split(' ').count(), ids.ends_with("099"), total.as_str()), (100, true, "101"));

    get(&site, "?limit=0").expect_faults(422, &[("query", "limit", "value_error.number.not_ge")]).await;
    let faults = [("query", "limit", "value_error.number.not_le"), ("query", "offset", "value_error.number.not_ge")];
    get(&site, "?limit=501&offset=-1").expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn an_agent_that_answers_nonsense_is_an_error_of_the_agent() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    for nonsense in [json!(null), json!("ok"), json!({"container_id": 1, "state": []}), json!([])] {
        let (_, answer) = exchange(&mut agent, post(&site, "/web/start"), Ok(nonsense.clone())).await;

        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("agent_error")), "{nonsense}");
    }
}

#[actix_web::test]
async fn what_went_wrong_has_a_name_of_the_api() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let cases = [
        ("agent_refused", 400, "agent_refused"),
        ("container_not_found", 404, "container_not_found"),
        ("docker_error", 400, "docker_error"),
        ("docker_unavailable", 400, "docker_unavailable"),
        ("agent_timeout", 400, "agent_timeout"),
        ("agent_busy", 503, "busy"),
        ("unknown_method", 400, "agent_error"),
        ("made up", 400, "agent_error"),
    ];

    for (said, status, code) in cases {
        let error = RequestError::new(said, &"é".repeat(10_000));
        let (_, answer) = exchange(&mut agent, get(&site, "/web"), Err(error)).await;

        let body = answer.json();
        assert_eq!((answer.status, body["code"].as_str()), (status, Some(code)), "{said}");
        assert!(body["detail"].as_str().unwrap().len() <= 1_000);
    }
}

#[actix_web::test]
async fn only_a_containers_name_names_a_container() {
    let site = Site::start().await;
    let _agent = site.agent().await;

    for name in ["-web", "a%2Fb", "a%20b", &"x".repeat(129)] {
        post(&site, &format!("/{name}/stop?timeout_seconds=301"))
            .expect_faults(
                422,
                &[
                    ("path", "container_id", "value_error.str.regex"),
                    ("query", "timeout_seconds", "value_error.number.not_le"),
                ],
            )
            .await;
    }
    get(&site, "/web/logs?stdout=maybe&tail=x&since=now")
        .expect_faults(
            422,
            &[
                ("query", "stdout", "type_error.bool"),
                ("query", "tail", "type_error.integer"),
                ("query", "since", "value_error.datetime"),
            ],
        )
        .await;
    get(&site, "/web/logs?stdout=false&stderr=false")
        .expect_faults(422, &[("query", "stderr", "value_error.streams")])
        .await;
}

#[actix_web::test]
async fn nobody_elses_containers_are_reached() {
    let site = Site::start().await;
    let _agent = site.agent().await;
    let stranger = site.service.register("stranger").await;
    let routes = [("GET", ""), ("GET", "/web"), ("GET", "/web/logs"), ("GET", "/web/stats")];
    let verbs = ["/web/start", "/web/stop", "/web/restart", "/web/pause", "/web/unpause"].map(|verb| ("POST", verb));

    for (method, rest) in routes.into_iter().chain(verbs) {
        let call = |method: &str| site.service.client.call(method.parse().unwrap(), &path(&site, rest));
        call(method).expect_error(401, "not_authenticated").await;
        call(method).bearer(&stranger.token).expect_error(404, "not_found").await;
        let other = format!("/docker/{}/containers{rest}", Uuid::now_v7());
        let nowhere = site.service.client.call(method.parse().unwrap(), &other);
        nowhere.bearer(&site.owner.token).expect_error(404, "not_found").await;
    }
}

#[actix_web::test]
async fn without_an_agent_nothing_can_be_asked() {
    let site = Site::start().await;

    get(&site, "").expect_error(400, "agent_offline").await;
    post(&site, "/web/start").expect_error(400, "agent_offline").await;
}

fn event(number: usize, text: &str) -> AgentMessage {
    let fields = json!({"number": number, "text": text}).as_object().unwrap().clone();
    AgentMessage::Event(Event { kind: "container".to_owned(), fields })
}

#[actix_web::test]
async fn events_reach_the_dashboard_as_far_as_they_are_bounded() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = site.dashboard().await;

    agent.send(&event(1, &"x".repeat(5_000))).await;
    agent.send(&event(2, "x")).await;

    assert_eq!(dashboard.until("event").await, json!({"kind": "container", "number": 2, "text": "x"}));
}

#[actix_web::test]
async fn how_all_containers_are_is_not_shown_and_uses_up_nothing() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = site.dashboard().await;
    let states = ContainerStates { containers: vec![ContainerState::default()], ..ContainerStates::default() };
    let fields = serde_json::to_value(states).unwrap().as_object().unwrap().clone();
    let states = AgentMessage::Event(Event { kind: "containers".to_owned(), fields });

    for _ in 0..30 {
        agent.send(&states).await;
    }
    agent.send(&event(1, "x")).await;

    assert_eq!(dashboard.until("event").await, json!({"kind": "container", "number": 1, "text": "x"}));
}

#[actix_web::test]
async fn an_agent_that_shouts_is_heard_as_often_as_it_may() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = site.dashboard().await;

    let began = Instant::now();
    for number in 0..400 {
        agent.send(&event(number, "x")).await;
    }
    agent.store(1, vec![crate::support::agent::sample_aged(0)]).await;

    let mut heard = 0;
    loop {
        let message = dashboard.next().await;
        match message["type"].as_str().unwrap() {
            "event" => heard += 1,
            "metrics" => break,
            _ => {}
        }
    }
    // As many as may come at once, and twenty for each second on the way.
    let most = 256 + 20 * (began.elapsed().as_secs() + 1);
    assert!((256..=most).contains(&heard), "{heard} events, {most} at most");
}

#[actix_web::test]
async fn a_caller_who_hangs_up_takes_the_question_back() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let waiting = rt::spawn(get(&site, "").send());
    let request_id = agent.expect_request().await.request_id;
    waiting.abort();

    assert_eq!(agent.next().await, ServiceMessage::RequestCancel { request_id });
}

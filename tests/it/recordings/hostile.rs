//! Agents that report what they like, and people who may not read.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentMessage, Request, RequestError, ServiceMessage, TerminalRecorded, TerminalStart};
use uuid::Uuid;

use super::{Browser, entries, recordings};
use crate::support::agent::FakeAgent;
use crate::support::rest::{Answer, Call};
use crate::support::site::Site;
use crate::support::text_of;

fn recorded(stream_id: Uuid) -> TerminalRecorded {
    TerminalRecorded {
        stream_id,
        by: "somebody else".into(),
        started_at: Timestamp::from_millis(1_700_000_000_000),
        seconds: 12.345_678,
        bytes: 4_711,
        sha256: "0123456789abcdef".repeat(4),
        columns: 80,
        rows: 24,
        interrupted: false,
    }
}

async fn report(agent: &mut FakeAgent, recorded: TerminalRecorded) {
    let stream_id = recorded.stream_id;
    agent.send(&AgentMessage::TerminalRecorded(recorded)).await;
    assert_eq!(agent.next().await, ServiceMessage::RecordedAck { stream_id });
}

/// The terminal that a browser opened.
async fn opened(agent: &mut FakeAgent) -> TerminalStart {
    match agent.next().await {
        ServiceMessage::TerminalStart(start) => start,
        other => panic!("expected terminal_start, got {other:?}"),
    }
}

#[actix_web::test]
async fn a_report_makes_one_entry_however_often_it_comes_and_whatever_it_says_then() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let _browser = Browser::open(&site).await;
    let stream_id = opened(&mut agent).await.stream_id;

    report(&mut agent, recorded(stream_id)).await;
    report(&mut agent, recorded(stream_id)).await;
    report(&mut agent, TerminalRecorded { sha256: "f".repeat(64), ..recorded(stream_id) }).await;
    let mut next_session = site.agent().await;
    report(&mut next_session, recorded(stream_id)).await;

    let entries = entries(&site, "terminal.recorded").await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["target"], json!(stream_id));
    assert_eq!(entries[0]["username"], "owner");
    let detail = json!({"sha256": recorded(stream_id).sha256, "bytes": 4_711, "seconds": 12.346});
    assert_eq!(entries[0]["detail"], detail);
}

#[actix_web::test]
async fn reports_that_come_at_once_make_one_entry() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let _browser = Browser::open(&site).await;
    let stream_id = opened(&mut agent).await.stream_id;
    let (store, detail) = (&site.service.state.store, json!({"sha256": "0"}));

    let notes = (0..8).map(|_| store.note_recording((site.owner.id, site.server_id), stream_id, detail.clone()));
    let noted = futures_util::future::join_all(notes).await;

    let new = noted.into_iter().filter(|noted| matches!(noted, Ok(signalbox::store::RecordingNote::New)));
    assert_eq!(new.count(), 1);
    assert_eq!(entries(&site, "terminal.recorded").await.len(), 1);
}

#[actix_web::test]
async fn a_recording_of_a_terminal_that_nobody_opened_here_has_no_entry() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let _browser = Browser::open(&site).await;
    let stream_id = opened(&mut agent).await.stream_id;
    let (_, key) = site.other_server().await;
    let mut other = FakeAgent::online(site.service.address, &key).await;

    report(&mut other, recorded(stream_id)).await;
    report(&mut agent, recorded(Uuid::now_v7())).await;
    report(&mut agent, TerminalRecorded { sha256: "not a hash".into(), ..recorded(stream_id) }).await;
    report(&mut agent, TerminalRecorded { bytes: u64::MAX, ..recorded(stream_id) }).await;

    assert_eq!(entries(&site, "terminal.recorded").await, Vec::<Value>::new());
}

#[actix_web::test]
async fn an_agent_with_reports_of_many_unknown_terminals_waits_for_its_answers() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let began = Instant::now();

    for _ in 0..17 {
        report(&mut agent, recorded(Uuid::now_v7())).await;
    }
    let waited = began.elapsed();
    // The others got their answers at once, and so does the next session.
    let mut next_session = site.agent().await;
    let _browser = Browser::open(&site).await;
    let stream_id = opened(&mut next_session).await.stream_id;
    report(&mut next_session, recorded(stream_id)).await;

    assert!(waited >= Duration::from_secs(5), "{waited:?}");
    let entries = entries(&site, "terminal.recorded").await;
    assert_eq!(entries.iter().map(|entry| &entry["target"]).collect::<Vec<_>>(), [&json!(stream_id)]);
}

/// What a caller gets while the agent answers their requests like this.
async fn ask(agent: &mut FakeAgent, call: Call, answers: Vec<Result<Value, RequestError>>) -> (Answer, Vec<Request>) {
    let pending = actix_web::rt::spawn(call.send());
    let mut requests = Vec::new();
    for outcome in answers {
        let request = agent.expect_request().await;
        agent.answer(&request, outcome).await;
        requests.push(request);
    }
    (pending.await.unwrap(), requests)
}

#[actix_web::test]
async fn a_recording_is_asked_for_piece_by_piece_and_nonsense_is_no_recording() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = Uuid::now_v7();
    let path = format!("{}/{id}", recordings(&site));
    let get = |path: &str| site.service.client.get(path).bearer(&site.owner.token);
    let piece = |data: &str, bytes: u64| Ok(json!({"data": data, "bytes": bytes}));

    let (answer, requests) = ask(&mut agent, get(&path), vec![piece("grü", 7), piece("ße", 7)]).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "grüße"), "{answer}");
    let offsets: Vec<&Value> = requests.iter().map(|request| &request.params["offset"]).collect();
    assert_eq!(offsets, [&json!(0), &json!(4)]);
    assert!(requests.iter().all(|request| request.method == "recordings.read"));
    assert_eq!(requests[0].params["recording_id"], json!(id));
    assert_eq!(requests[0].params["asker"], json!({"user": "owner"}));
    assert_eq!(entries(&site, "terminal.replay").await.len(), 1);

    let cases = [
        (Err(RequestError::new("not_found", "no such recording")), 404, "not_found"),
        (Err(RequestError::new("unknown_method", "this agent does not know the method")), 400, "agent_error"),
        (Ok(json!({"data": 7})), 400, "agent_error"),
        (piece("more than there is", 3), 400, "agent_error"),
        (piece(&"x".repeat(200_000), 200_000), 400, "agent_error"),
        (piece("the first of many", (16 << 20) + 1), 400, "agent_error"),
    ];
    for (outcome, status, code) in cases {
        let (answer, _) = ask(&mut agent, get(&path), vec![outcome]).await;
        assert_eq!((answer.status, &answer.json()["code"]), (status, &json!(code)), "{answer}");
    }
    assert_eq!(entries(&site, "terminal.replay").await.len(), 1, "what was not read has no entry");

    let with = |field: &str, value: Value| {
        let mut unsound = json!(recorded(id));
        unsound[field] = value;
        json!([unsound])
    };
    let lists =
        [with("sha256", json!("<script>")), with("bytes", json!((16 << 20) + 1)), json!([recorded(id), recorded(id)])];
    let mut requests = Vec::new();
    for list in lists {
        let listed = Ok(json!({"recordings": list, "total": 1}));
        let (answer, asked) = ask(&mut agent, get(&recordings(&site)), vec![listed]).await;
        assert_eq!(answer.status, 400, "{answer}");
        requests = asked;
    }
    assert_eq!(requests[0].params, json!({"limit": 100, "offset": 0, "asker": {"user": "owner"}}));
}

#[actix_web::test]
async fn a_piece_is_asked_for_again_while_the_agent_is_busy_but_not_for_ever() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let path = format!("{}/{}", recordings(&site), Uuid::now_v7());
    let busy = || Err(RequestError::new("agent_busy", "the agent has too many requests to answer"));
    let piece = |data: &str| Ok(json!({"data": data, "bytes": 4}));
    let get = || site.service.client.get(&path).bearer(&site.owner.token);

    let (whole, requests) = ask(&mut agent, get(), vec![piece("on"), busy(), busy(), piece("ce")]).await;
    let url = format!("http://{}/api/v1{path}", site.service.address);
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let pending = actix_web::rt::spawn(client.get(url).bearer_auth(&site.owner.token).send());
    for outcome in std::iter::once(piece("on")).chain((0..5).map(|_| busy())) {
        let request = agent.expect_request().await;
        agent.answer(&request, outcome).await;
    }
    let cut_off = pending.await.unwrap().unwrap();

    assert_eq!((whole.status, whole.text.as_str()), (200, "once"), "{whole}");
    let offsets: Vec<&Value> = requests.iter().map(|request| &request.params["offset"]).collect();
    assert_eq!(offsets, [&json!(0), &json!(2), &json!(2), &json!(2)]);
    assert!(cut_off.bytes().await.is_err(), "it must not look whole");
    // The first piece is refused with a status that says so.
    let (refused, _) = ask(&mut agent, get(), vec![busy()]).await;
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("busy")), "{refused}");
}

#[actix_web::test]
async fn a_file_that_ends_early_breaks_the_response_off() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let path = format!("{}/{}", recordings(&site), Uuid::now_v7());
    let url = format!("http://{}/api/v1{path}", site.service.address);
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();

    let pending = actix_web::rt::spawn(client.get(url).bearer_auth(&site.owner.token).send());
    for data in ["begun", ""] {
        let request = agent.expect_request().await;
        agent.answer(&request, Ok(json!({"data": data, "bytes": 10}))).await;
    }
    let response = pending.await.unwrap().unwrap();

    assert_eq!(response.status(), 200);
    assert!(response.bytes().await.is_err(), "it must not look whole");
}

#[actix_web::test]
async fn a_caller_without_the_right_to_terminals_reads_none_and_neither_does_a_program() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let (guest, operator) = (site.service.register("guest").await, site.service.register("operator").await);
    let stranger = site.service.register("stranger").await;
    let scope = json!({"server_id": site.server_id});
    let grant = |username: &str, rights: Value| {
        let subject = json!({"username": username});
        json!({"subject": subject, "scope": scope, "role": "operator", "rights": rights})
    };
    let others = grant("guest", json!(["commands", "logs", "containers"]));
    site.service.client.post("/grants").bearer(&site.owner.token).json(others).expect(201).await;
    let program = json!({"name": "program", "role": "manager", "scope": {"all": true}});
    let program = site.service.client.post("/tokens").bearer(&site.owner.token).json(program).expect(201).await;
    let program = text_of(&program["token"]);
    let list = recordings(&site);
    let one = format!("{list}/{}", Uuid::now_v7());

    for path in [&list, &one] {
        let by = |token: &str| site.service.client.get(path).bearer(token);
        by(&guest.token).expect_error(403, "forbidden").await;
        by(&stranger.token).expect_error(404, "not_found").await;
        by(&program).expect_error(403, "token_not_allowed").await;
        site.service.client.get(path).expect_refusal(401).await;
    }
    let with_terminals = grant("operator", json!(["terminal"]));
    site.service.client.post("/grants").bearer(&site.owner.token).json(with_terminals).expect(201).await;
    let call = site.service.client.get(&list).bearer(&operator.token);
    let (answer, _) = ask(&mut agent, call, vec![Ok(json!({"recordings": [], "total": 0}))]).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "[]"));

    drop(agent);
    site.until_status("offline").await;
    site.service.client.get(&one).bearer(&site.owner.token).expect_error(400, "agent_offline").await;
    let bad = format!("{list}/nonsense");
    site.service.client.get(bad).bearer(&site.owner.token).expect(422).await;
}

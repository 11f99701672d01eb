//! Sessions of agents over streams of bytes, without sockets, with a complete service except for the network.

mod scene;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use signalbox_protocol::agent::{AgentMessage, Metrics, Response, ServiceMessage};
use signalbox_protocol::close;
use uuid::Uuid;

use crate::commands::NewJob;
use crate::registry::{CallError, Join, Order, SessionEnd};
use scene::{BOOT_ID, SOON, Scene, line, sample};

#[actix::test]
async fn a_key_opens_its_server() {
    let scene = Scene::new().await;
    let mut agent = scene.connect();

    agent.say(&scene.auth(&scene.key)).await;

    let response = &agent.next().await["data"];
    assert_eq!((&response["success"], &response["server_id"]), (&json!(true), &json!(scene.server_id)));
    assert!(scene.state.fleet.is_here(scene.server_id));
    let holder = scene.state.registry.holder(scene.server_id).await.unwrap();
    assert_eq!(response["session_id"], json!(holder.session_id));
}

#[actix::test]
async fn a_wrong_key_opens_nothing() {
    let scene = Scene::new().await;
    let mut agent = scene.connect();

    agent.say(&scene.auth("sbx_0123456789abcdef_wrong")).await;

    assert_eq!(agent.next().await["data"]["code"], "unauthorized");
    assert_eq!(agent.close_code().await, close::UNAUTHORIZED);
    assert!(!scene.state.fleet.is_here(scene.server_id));
}

#[actix::test]
async fn a_session_that_begins_with_another_message_is_closed() {
    let scene = Scene::new().await;
    let mut agent = scene.connect();

    agent.say(&AgentMessage::Metrics(Metrics { seq: 1, samples: Vec::new(), sent_at: None })).await;

    assert_eq!(agent.close_code().await, close::UNAUTHORIZED);
}

#[actix::test]
async fn a_sample_is_acknowledged_when_it_is_committed() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    agent.say(&sample()).await;

    assert_eq!(agent.next().await, json!({ "type": "ack", "data": { "seq": 7 } }));
    assert_eq!(scene.state.store.journal_after(0, 10).await.unwrap().len(), 1);
    assert_eq!(scene.state.fleet.acknowledged(scene.server_id, BOOT_ID), 7);
}

#[actix::test]
async fn a_message_of_a_later_version_is_ignored_and_a_malformed_one_ends_the_session() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    agent.text(br#"{"type":"weather","data":{"degrees":21}}"#).await;
    agent.say(&sample()).await;
    assert_eq!(agent.next().await["type"], "ack");
    agent.text(b"{").await;

    assert_eq!(agent.close_code().await, close::MALFORMED);
    assert_eq!(scene.call(SOON).await, Err(CallError::Offline));
}

#[actix::test]
async fn a_second_key_in_one_session_ends_it() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    agent.say(&scene.auth(&scene.key)).await;

    assert_eq!(agent.close_code().await, close::MALFORMED);
}

/// A session that sends what it is given.
struct Sending;

impl actix::Actor for Sending {
    type Context = actix::Context<Self>;
}

impl actix::Handler<Order> for Sending {
    type Result = ();

    fn handle(&mut self, order: Order, _: &mut Self::Context) {
        if let Order::Tell(ServiceMessage::Execute(_), Some(sent)) = order {
            _ = sent.send(Ok(()));
        }
    }
}

#[actix::test]
async fn a_command_reaches_an_agent_whose_handshake_is_not_over() {
    let scene = Scene::new().await;
    let join = Join {
        server_id: scene.server_id,
        owner_id: scene.owner_id,
        session_id: Uuid::now_v7(),
        key_id: Uuid::now_v7(),
        key_expires_at: None,
        orders: actix::Actor::start(Sending).recipient(),
        heartbeat: Arc::default(),
    };
    scene.state.registry.join(join).await.unwrap();
    let _arriving = scene.state.jobs.reports().reconcile(scene.server_id, None).await.unwrap();

    let job = scene.state.jobs.run(NewJob::of_make(scene.server_id, scene.owner_id), SOON).await;

    assert!(!scene.state.fleet.is_here(scene.server_id));
    assert!(job.unwrap().is_sent());
}

#[actix::test]
async fn a_newer_session_takes_over() {
    let scene = Scene::new().await;
    let mut older = scene.agent().await;

    let mut newer = scene.agent().await;

    assert_eq!(older.close_code().await, close::REPLACED);
    let answering = async {
        let request = newer.next().await;
        let request_id = serde_json::from_value(request["data"]["request_id"].clone()).unwrap();
        newer.say(&AgentMessage::Response(Response::new(request_id, Ok(json!("newer"))))).await;
        // The session reads only as long as its agent takes its output.
        newer.hear().await
    };
    tokio::select! {
        answer = scene.call(SOON) => assert_eq!(answer, Ok(json!("newer"))),
        said = answering => panic!("it got {said:?}"),
    }
}

#[actix::test]
async fn a_call_that_times_out_is_cancelled_at_the_agent() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    let waiting = scene.call(Duration::from_millis(50));
    let asked = async {
        let request = agent.next().await;
        (request["data"]["request_id"].clone(), agent.next().await)
    };
    let (answer, (request_id, cancelled)) = tokio::join!(waiting, asked);

    assert_eq!(answer, Err(CallError::Timeout));
    assert_eq!(cancelled, json!({ "type": "request_cancel", "data": { "request_id": request_id } }));
}

#[actix::test]
async fn a_hangup_fails_the_waiting_call_and_the_next_one_finds_the_agent_offline() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let hanging_up = async move {
        agent.next().await;
        drop(agent);
    };

    let (answer, ()) = tokio::join!(scene.call(SOON), hanging_up);

    assert_eq!(answer, Err(CallError::Disconnected));
    while scene.state.fleet.is_here(scene.server_id) {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.call(SOON).await, Err(CallError::Offline));
}

#[actix::test]
async fn a_stream_reaches_its_reader_until_the_agent_ends_it() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let (mut stream, stream_id) = scene.log(4_096, &mut agent).await;

    agent.say(&line(stream_id, "one")).await;
    agent.say(&line(Uuid::now_v7(), "of a stream that was never opened")).await;
    agent.say(&line(stream_id, "two")).await;
    agent.say(&AgentMessage::Response(Response::new(stream_id, Ok(json!({ "lines": 2 }))))).await;
    // The session reads its agent's messages only as long as its own are taken.
    agent.say(&sample()).await;
    assert_eq!(agent.next().await["type"], "ack");

    assert_eq!(stream.next().await, Some(line(stream_id, "one")));
    assert_eq!(stream.next().await, Some(line(stream_id, "two")));
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.outcome().await, Ok(json!({ "lines": 2 })));
}

#[actix::test]
async fn a_stream_that_exceeds_its_credit_is_stopped() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let (mut stream, stream_id) = scene.log(10, &mut agent).await;

    agent.say(&line(stream_id, "longer than ten bytes")).await;
    agent.say(&line(stream_id, "too much")).await;

    assert_eq!(agent.next().await, json!({ "type": "logs_stop", "data": { "stream_id": stream_id } }));
    assert_eq!(stream.next().await, Some(line(stream_id, "longer than ten bytes")));
    assert_eq!(stream.next().await, None);
    assert!(matches!(stream.outcome().await, Err(CallError::Agent(error)) if error.code == "stream_overrun"));
}

#[actix::test]
async fn a_stream_without_a_reader_is_stopped_at_once() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let (stream, stream_id) = scene.log(4_096, &mut agent).await;

    drop(stream);

    assert_eq!(agent.next().await, json!({ "type": "logs_stop", "data": { "stream_id": stream_id } }));
}

#[actix::test]
async fn the_calls_to_one_agent_are_bounded() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    let calls = futures_util::future::join_all((0..65).map(|_| scene.call(SOON)));
    let asked = async move {
        for _ in 0..64 {
            assert_eq!(agent.next().await["type"], "request");
        }
        // The waiting calls fail when it disconnects.
    };
    let (answers, ()) = tokio::join!(calls, asked);

    let count = |error: CallError| answers.iter().filter(|answer| **answer == Err(error.clone())).count();
    assert_eq!((count(CallError::Disconnected), count(CallError::Busy)), (64, 1));
}

#[actix::test]
async fn each_end_has_its_close_code() {
    let ends = [
        (SessionEnd::KeyRevoked, close::UNAUTHORIZED),
        (SessionEnd::ServerDeleted, close::SERVER_DELETED),
        (SessionEnd::Restarting, close::RESTARTING),
        (SessionEnd::Silent, close::SILENT),
    ];
    let scene = Scene::new().await;
    for (end, code) in ends {
        let mut agent = scene.agent().await;

        scene.state.registry.end_session(scene.session().await, end).await;

        assert_eq!(agent.close_code().await, code, "{end:?}");
    }
}

//! `POST /commands`: which servers a batch is for, and how it is shown.

use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentMessage, RequestError, Response};
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::site::Site;
use crate::support::{assert_timestamp, eventually, keys_of, text_of, uuid_of};

/// Servers of one account, each with its agent.
pub struct Troop {
    pub site: Site,
    pub ids: Vec<Uuid>,
    pub keys: Vec<String>,
    pub agents: Vec<FakeAgent>,
}

impl Troop {
    pub async fn of(count: usize) -> Self {
        let site = Site::start().await;
        let (mut ids, mut keys) = (vec![site.server_id], vec![site.key.clone()]);
        for number in 1..count {
            let (id, key) = site.service.server_with_key(&site.owner, &format!("more-{number}")).await;
            ids.push(id);
            keys.push(key);
        }
        let mut agents = Vec::new();
        for key in &keys {
            agents.push(FakeAgent::online(site.service.address, key).await);
        }
        Self { site, ids, keys, agents }
    }

    /// Starts a batch of `true` with these fields too; on all servers when they name none.
    pub async fn start(&self, fields: Value) -> Value {
        let mut body = json!({"command": "true"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        if body["server_ids"].is_null() && body["tag"].is_null() {
            body["server_ids"] = json!(self.ids);
        }
        self.site.post("/commands").json(body).expect(201).await
    }

    pub async fn batch(&self, batch: &Value) -> Value {
        self.site.read(&format!("/commands/batches/{}", text_of(&batch["id"]))).await
    }

    /// The batch when nothing of it is left to do.
    pub async fn finished(&self, batch: &Value) -> Value {
        eventually("the end of the batch", || async {
            let batch = self.batch(batch).await;
            batch["finished_at"].is_string().then_some(batch)
        })
        .await
    }

    /// Which of the agents were sent a command, by now, and nothing else.
    pub async fn executed(&mut self, seq: u64) -> Vec<usize> {
        let mut executed = Vec::new();
        for (number, agent) in self.agents.iter_mut().enumerate() {
            executed.extend(agent.settle(seq).await.iter().map(|_| number));
        }
        executed
    }

    pub async fn expect_silence(&mut self) {
        assert_eq!(self.executed(1_000).await, Vec::<usize>::new());
    }
}

pub fn server_ids_of(batch: &Value) -> Vec<Uuid> {
    batch["results"].as_array().unwrap().iter().map(|result| uuid_of(&result["server_id"])).collect()
}

pub fn statuses_of(batch: &Value) -> Vec<String> {
    batch["results"].as_array().unwrap().iter().map(|result| text_of(&result["status"])).collect()
}

async fn tag(site: &Site, id: Uuid, tags: &[&str]) {
    let path = format!("/servers/{id}");
    site.service.client.put(path).bearer(&site.owner.token).json(json!({ "tags": tags })).expect(200).await;
}

#[actix_web::test]
async fn a_batch_runs_on_the_servers_it_names_in_that_order() {
    let mut troop = Troop::of(3).await;
    let named = [troop.ids[2], troop.ids[0]];

    let batch = troop.start(json!({"server_ids": named, "stdin": "in", "timeout_seconds": 9})).await;
    for number in [2, 0] {
        let execute = troop.agents[number].expect_execute().await;
        assert_eq!(
            (execute.command.as_str(), execute.stdin.as_deref(), execute.timeout_seconds),
            ("true", Some("in"), 9)
        );
    }

    assert_eq!(server_ids_of(&batch), named);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn a_tag_selects_every_server_of_mine_that_has_it() {
    let mut troop = Troop::of(3).await;
    tag(&troop.site, troop.ids[0], &["web", "production"]).await;
    tag(&troop.site, troop.ids[1], &["webserver"]).await;
    tag(&troop.site, troop.ids[2], &["web"]).await;
    let stranger = troop.site.service.register("stranger").await;
    let body = json!({"name": "web-1", "host": "192.0.2.1", "tags": ["web"]});
    troop.site.service.client.post("/servers").bearer(&stranger.token).json(body).expect(201).await;

    let batch = troop.start(json!({"tag": "web"})).await;
    troop.agents[0].expect_execute().await;
    troop.agents[2].expect_execute().await;

    let mut selected = server_ids_of(&batch);
    selected.sort();
    assert_eq!(selected, [troop.ids[0], troop.ids[2]]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn names_and_a_tag_select_both_and_each_server_once() {
    let mut troop = Troop::of(3).await;
    tag(&troop.site, troop.ids[0], &["web"]).await;
    tag(&troop.site, troop.ids[1], &["web"]).await;
    let named = [troop.ids[1], troop.ids[2], troop.ids[1]];

    let batch = troop.start(json!({"server_ids": named, "tag": "web"})).await;
    for agent in &mut troop.agents {
        agent.expect_execute().await;
    }

    assert_eq!(server_ids_of(&batch), [troop.ids[1], troop.ids[2], troop.ids[0]]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn an_empty_selection_is_an_error_and_nothing_runs() {
    let mut troop = Troop::of(2).await;
    let refused = [
        json!({"command": "true"}),
        json!({"command": "true", "server_ids": null, "tag": null}),
        json!({"command": "true", "server_ids": []}),
        json!({"command": "true", "server_ids": [], "tag": null}),
        json!({"command": "true", "tag": ""}),
        json!({"command": "true", "tag": "nobody-has-it"}),
        json!({"command": "true", "tag": "%"}),
        json!({"command": "true", "tag": "*"}),
        json!({"command": "true", "server_ids": [], "tag": "nobody-has-it"}),
    ];

    for body in refused {
        let answer = troop.site.post("/commands").json(body.clone()).send().await;
        assert!([400, 422].contains(&answer.status), "{body}: {answer}");
    }

    troop.expect_silence().await;
    assert_eq!(troop.site.read("/commands/batches").await, json!([]));
}

#[actix_web::test]
async fn one_server_that_is_not_mine_keeps_all_from_running() {
    let mut troop = Troop::of(2).await;
    let stranger = troop.site.service.register("stranger").await;
    let (strange_id, strange_key) = troop.site.service.server_with_key(&stranger, "web-3").await;
    troop.agents.push(FakeAgent::online(troop.site.service.address, &strange_key).await);

    for other in [strange_id, Uuid::now_v7()] {
        let body = json!({"command": "true", "server_ids": [troop.ids[0], other, troop.ids[1]]});
        troop.site.post("/commands").json(body).expect_error(404, "not_found").await;
    }

    troop.expect_silence().await;
    assert_eq!(troop.site.read("/commands/batches").await, json!([]));
    assert!(troop.site.commands().await.is_empty());
}

#[actix_web::test]
async fn every_fault_of_a_batch_is_reported_at_once() {
    let troop = Troop::of(1).await;
    let body = json!({"server_ids": [5, "web-1", troop.ids[0]], "tag": 7, "timeout_seconds": 3601, "concurrency": 0,
        "stop_on_failure": "yes", "stdin": []});

    let faults = [
        ("body", "command", "value_error.missing"),
        ("body", "server_ids.0", "type_error.uuid"),
        ("body", "server_ids.1", "type_error.uuid"),
        ("body", "tag", "type_error.str"),
        ("body", "timeout_seconds", "value_error.number.not_le"),
        ("body", "concurrency", "value_error.number.not_ge"),
        ("body", "stop_on_failure", "type_error.bool"),
        ("body", "stdin", "type_error.str"),
    ];
    troop.site.post("/commands").json(body).expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn a_batch_tells_what_came_of_it_on_each_server() {
    let mut troop = Troop::of(2).await;
    let started = troop.start(json!({})).await;
    assert_eq!((uuid_of(&started["id"]).get_version_num(), &started["command"]), (7, &json!("true")));
    assert_timestamp(&started["created_at"]);
    assert_eq!(started["finished_at"], Value::Null);

    let mut ids = Vec::new();
    for agent in &mut troop.agents {
        ids.push(agent.expect_execute().await.command_id);
    }
    troop.agents[0].send_output(ids[0], signalbox_protocol::agent::Stream::Stdout, "fine\n").await;
    troop.agents[0].finish(ids[0]).await;
    troop.agents[1].send_result(ids[1], signalbox_protocol::agent::CommandStatus::TimedOut, Some(124)).await;
    let batch = troop.finished(&started).await;

    assert_timestamp(&batch["finished_at"]);
    let counts = json!({"queued": 0, "running": 0, "succeeded": 1, "failed": 0, "timed_out": 1, "cancelled": 0,
        "lost": 0, "skipped": 0});
    assert_eq!(batch["counts"], counts);
    let (first, second) = (&batch["results"][0], &batch["results"][1]);
    assert_eq!((uuid_of(&first["command_id"]), uuid_of(&second["command_id"])), (ids[0], ids[1]));
    assert_eq!((&first["status"], &first["exit_code"]), (&json!("succeeded"), &json!(0)));
    assert_eq!((&first["preview"], &first["server_name"]), (&json!("fine\n"), &json!("web-1")));
    assert_eq!((&second["status"], &second["exit_code"]), (&json!("timed_out"), &json!(124)));
    let command = troop.site.command(ids[0]).await;
    assert_eq!((&command["batch_id"], &command["output"]), (&batch["id"], &json!("fine\n")));
}

#[actix_web::test]
async fn batches_are_listed_newest_first_without_their_results() {
    let mut troop = Troop::of(1).await;
    for number in 0..3 {
        troop.start(json!({"command": format!("echo {number}")})).await;
        troop.agents[0].expect_execute().await;
    }

    let call = troop.site.service.client.get("/commands/batches?limit=2&offset=1").bearer(&troop.site.owner.token);
    let answer = call.expect_answer(200).await;

    assert_eq!(answer.header("X-Total-Count"), "3");
    let page = answer.json();
    let commands: Vec<_> = page.as_array().unwrap().iter().map(|batch| text_of(&batch["command"])).collect();
    assert_eq!(commands, ["echo 1", "echo 0"]);
    assert!(!keys_of(&page[0]).contains(&"results"));
    assert_eq!(page[0]["username"], "owner");
}

#[actix_web::test]
async fn why_a_signature_did_not_suffice_stands_at_each_server() {
    let mut troop = Troop::of(2).await;
    let batch = troop.start(json!({})).await;
    let detail = "this agent runs what its operators have signed only";
    for (agent, reason) in troop.agents.iter_mut().zip([Some("not_signed"), None]) {
        let sent = agent.expect_execute().await;
        let error = RequestError { reason: reason.map(str::to_owned), ..RequestError::new("agent_refused", detail) };
        agent.send(&AgentMessage::Response(Response::new(sent.command_id, Err(error)))).await;
    }

    let ended = troop.finished(&batch).await;

    let errors: Vec<&Value> = ended["results"].as_array().unwrap().iter().map(|result| &result["error"]).collect();
    let signed = json!({"code": "agent_refused", "detail": detail, "reason": "not_signed"});
    assert_eq!(errors, [&signed, &json!({"code": "agent_refused", "detail": detail})]);
    let id = text_of(&ended["results"][0]["command_id"]);
    let stored = troop.site.read(&format!("/commands/{}/{id}", troop.ids[0])).await;
    assert_eq!(stored["error"], signed);
}

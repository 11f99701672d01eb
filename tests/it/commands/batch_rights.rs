//! A batch whose user loses the right to run commands while some of its servers wait.

use serde_json::{Value, json};
use uuid::Uuid;

use super::batches::Troop;
use crate::support::commands::answered;
use crate::support::{Account, eventually, text_of};

/// Somebody who may run commands on the servers of the troop.
struct Guest {
    troop: Troop,
    account: Account,
    grant: Value,
}

impl Guest {
    async fn start() -> Self {
        let troop = Troop::of(3).await;
        let account = troop.site.service.register("guest").await;
        let grant = json!({
            "subject": {"username": "guest"}, "scope": {"all": true}, "role": "operator", "rights": ["commands"],
        });
        let grant = troop.site.post("/grants").json(grant).expect(201).await;
        Self { troop, account, grant }
    }

    /// Starts a batch of one command at a time with these fields too. Returns it when the first one runs, and that one.
    async fn begin(&mut self, fields: Value) -> (Value, Uuid) {
        let mut body = json!({"command": "true", "server_ids": self.troop.ids, "concurrency": 1});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let call = self.troop.site.service.client.post("/commands").bearer(&self.account.token);
        let batch = call.json(body).expect(201).await;
        (batch, self.troop.agents[0].expect_execute().await.command_id)
    }

    async fn end_grant(&self) {
        let path = format!("/grants/{}", text_of(&self.grant["id"]));
        self.troop.site.service.client.delete(path).bearer(&self.troop.site.owner.token).expect(200).await;
    }

    /// The only command of a server, as its owner reads it when it has ended.
    async fn ended(&self, server_id: Uuid) -> Value {
        let list = format!("/commands/{server_id}");
        eventually("the command has ended", async || {
            let newest = self.troop.site.read(&list).await[0].clone();
            let command = self.troop.site.read(&format!("{list}/{}", text_of(&newest["command_id"]))).await;
            command["finished_at"].is_string().then_some(command)
        })
        .await
    }
}

fn right_ended() -> Value {
    json!({"code": "forbidden", "detail": "the right to run commands on this server ended"})
}

#[actix_web::test]
async fn no_command_is_sent_after_the_grant_ended() {
    let mut guest = Guest::start().await;
    let (_, first) = guest.begin(json!({})).await;

    guest.end_grant().await;
    guest.troop.agents[0].finish(first).await;

    let ids = guest.troop.ids.clone();
    assert_eq!(guest.ended(ids[0]).await["status"], "succeeded", "it ran already");
    for server_id in &ids[1..] {
        let command = guest.ended(*server_id).await;
        assert_eq!((&command["status"], &command["error"]), (&json!("failed"), &right_ended()));
        let entries = guest.troop.site.read(&format!("/audit?action=command.&server_id={server_id}")).await;
        assert_eq!((entries.as_array().unwrap().len(), &entries[0]["outcome"]), (1, &json!("refused")), "{entries}");
    }
    guest.troop.expect_silence().await;
}

#[actix_web::test]
async fn no_command_is_sent_for_an_account_that_was_disabled() {
    let mut guest = Guest::start().await;
    let (_, first) = guest.begin(json!({})).await;

    // The first account is the administrator.
    let path = format!("/users/{}", guest.account.id);
    let disable = guest.troop.site.service.client.put(path).bearer(&guest.troop.site.owner.token);
    disable.json(json!({"disabled": true})).expect(200).await;
    guest.troop.agents[0].finish(first).await;

    for server_id in guest.troop.ids.clone().into_iter().skip(1) {
        assert_eq!(guest.ended(server_id).await["error"], right_ended());
    }
    guest.troop.expect_silence().await;
}

#[actix_web::test]
async fn a_batch_that_stops_on_failure_stops_there_and_other_batches_run_where_the_right_is_left() {
    let mut guest = Guest::start().await;
    let second = guest.troop.ids[1];
    let (_, first) = guest.begin(json!({"stop_on_failure": true})).await;
    guest.end_grant().await;
    guest.troop.agents[0].finish(first).await;
    assert_eq!(guest.ended(second).await["status"], "failed");
    assert_eq!(guest.ended(guest.troop.ids[2]).await["status"], "skipped");

    // Own servers need no grant: the owner's batch runs on all of them.
    let batch = guest.troop.start(json!({})).await;
    for number in 0..3 {
        let id = guest.troop.agents[number].expect_execute().await.command_id;
        guest.troop.agents[number].finish(id).await;
    }
    assert_eq!(guest.troop.finished(&batch).await["counts"]["succeeded"], 3);
    let run = guest.troop.site.run("true");
    let id = guest.troop.agents[0].expect_execute().await.command_id;
    guest.troop.agents[0].finish(id).await;
    assert_eq!(answered(run).await.status, 200);
}

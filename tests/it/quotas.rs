//! How much one account may have: of each thing as many as its quota says, even when all are created at once.

use futures_util::future::join_all;
use serde_json::{Value, json};
use signalbox::config::Quotas;
use signalbox_protocol::agent::{CommandStatus, Stream};
use uuid::Uuid;

use crate::support::rest::Call;
use crate::support::site::Site;
use crate::support::{Account, eventually, text_of, uuid_of};

async fn site(quotas: Quotas) -> Site {
    Site::start_with(|config| config.quotas = quotas).await
}

impl Site {
    async fn used(&self, name: &str) -> (u64, u64) {
        let all = self.read("/auth/quotas").await;
        let one = all.as_array().unwrap().iter().find(|quota| quota["name"] == name).unwrap();
        (one["used"].as_u64().unwrap(), one["limit"].as_u64().unwrap())
    }

    fn another_server(&self) -> Call {
        self.post("/servers").json(json!({"name": "more", "host": "192.0.2.12"}))
    }

    fn silence(&self) -> Call {
        self.post("/alerts/silences").json(json!({
            "server_id": self.server_id, "reason": "work", "starts_at": "2098-01-01T00:00:00Z", "ends_at": "2098-01-02T00:00:00Z",
        }))
    }

    fn key(&self) -> Call {
        self.post("/api-keys").json(json!({"server_id": self.server_id, "name": "agent"}))
    }

    fn channel(&self) -> Call {
        self.post("/notifications/channels").json(json!({
            "name": "on call", "type": "webhook", "settings": {"url": "https://hooks.example.com/1"},
        }))
    }

    fn threshold(&self, reach: &Value) -> Call {
        let mut body = json!({"metric_type": "cpu", "threshold_value": 90, "comparison": "gt"});
        body.as_object_mut().unwrap().extend(reach.as_object().unwrap().clone());
        self.post("/alerts/thresholds").json(body)
    }
}

#[actix_web::test]
async fn the_list_has_pages() {
    let site = Site::start().await;
    let list = |query: &str| site.service.client.get(format!("/auth/quotas{query}")).bearer(&site.owner.token);

    let whole = list("").expect_answer(200).await;
    let page = list("?limit=2&offset=1").expect_answer(200).await;

    let all = whole.json();
    assert_eq!(whole.header("X-Total-Count"), all.as_array().unwrap().len().to_string());
    assert_eq!((page.json(), page.header("X-Total-Count")), (json!([all[1], all[2]]), whole.header("X-Total-Count")));
    assert_eq!(list("?offset=100").expect(200).await, json!([]));
    list("?limit=0").expect_faults(422, &[("query", "limit", "value_error.number.not_ge")]).await;
}

/// Creates ten at once where two exist or are possible: two are created, the others refused by name.
async fn expect_two_of_ten(what: &str, site: &Site, call: impl Fn() -> Call) {
    let (used, limit) = site.used(what).await;

    let answers = join_all((0..10).map(|_| call().send())).await;

    let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!(made.len() as u64, limit - used, "{what}");
    for answer in &refused {
        let body = answer.json();
        assert_eq!((answer.status, &body["code"]), (400, &json!("quota_exceeded")), "{what}: {body}");
        let detail = text_of(&body["detail"]);
        assert!(detail.contains(&limit.to_string()) && detail.contains("--quota-"), "{detail}");
    }
    assert_eq!(site.used(what).await, (limit, limit), "{what}");
}

#[actix_web::test]
async fn requests_at_once_do_not_pass_a_quota_together() {
    let quotas = Quotas { servers: 3, api_keys: 3, thresholds: 2, silences: 2, channels: 2, ..Quotas::default() };
    let site = site(quotas).await;

    expect_two_of_ten("servers", &site, || site.another_server()).await;
    expect_two_of_ten("api_keys", &site, || site.key()).await;
    expect_two_of_ten("thresholds", &site, || site.threshold(&json!({"server_id": site.server_id}))).await;
    expect_two_of_ten("silences", &site, || site.silence()).await;
    expect_two_of_ten("channels", &site, || site.channel()).await;
}

#[actix_web::test]
async fn what_is_deleted_makes_room_and_what_others_have_does_not_count() {
    let site = site(Quotas { servers: 1, ..Quotas::default() }).await;
    let other: Account = site.service.register("other").await;

    site.another_server().expect_error(400, "quota_exceeded").await;
    site.service.server(&other, "theirs").await;
    site.service.client.delete(format!("/servers/{}", site.server_id)).bearer(&site.owner.token).expect(200).await;

    site.another_server().expect(201).await;
}

#[actix_web::test]
async fn a_threshold_counts_once_for_every_server_that_it_is_for() {
    let site = site(Quotas { evaluations: 4, ..Quotas::default() }).await;
    let tagged = json!({"name": "db-1", "host": "192.0.2.13", "tags": ["db"]});
    let tagged = uuid_of(&site.post("/servers").json(tagged).expect(201).await["id"]);
    let all = json!({"server_id": null, "all": true});

    site.threshold(&all).expect(201).await;
    let by_tag = site.threshold(&json!({"server_id": null, "tag": "db"})).expect(201).await;
    assert_eq!(site.used("evaluations").await, (3, 4));

    site.threshold(&all).expect_error(400, "quota_exceeded").await;
    let disabled = json!({"server_id": null, "all": true, "enabled": false});
    let disabled = site.threshold(&disabled).expect(201).await;
    let path = format!("/alerts/thresholds/{}", text_of(&disabled["id"]));
    let put = |path: &str, body: Value| site.service.client.put(path).bearer(&site.owner.token).json(body);
    put(&path, json!({"enabled": true})).expect_error(400, "quota_exceeded").await;

    // A server more is an evaluation more for each that is for it.
    site.another_server().expect(201).await;
    assert_eq!(site.used("evaluations").await, (4, 4));
    site.another_server().expect_error(400, "quota_exceeded").await;
    let server = format!("/servers/{}", site.server_id);
    put(&server, json!({"tags": ["db"]})).expect_error(400, "quota_exceeded").await;

    // A change that leads to fewer is never refused.
    put(&format!("/servers/{tagged}"), json!({"tags": []})).expect(200).await;
    put(&server, json!({"tags": ["db"]})).expect(200).await;
    let path = format!("/alerts/thresholds/{}", text_of(&by_tag["id"]));
    put(&path, json!({"enabled": false})).expect(200).await;
    assert_eq!(site.used("evaluations").await, (3, 4));
}

#[actix_web::test]
async fn only_batches_that_run_count() {
    let site = site(Quotas { batches: 1, ..Quotas::default() }).await;
    let mut agent = site.agent().await;
    let batch = || site.post("/commands").json(json!({"server_ids": [site.server_id], "command": "sleep 60"}));

    let first = batch().expect(201).await;
    let command = agent.expect_execute().await.command_id;
    batch().expect_error(400, "quota_exceeded").await;
    agent.finish(command).await;
    let path = format!("/commands/batches/{}", text_of(&first["id"]));
    eventually("the end of the batch", || async { site.read(&path).await["finished_at"].is_string().then_some(()) })
        .await;

    batch().expect(201).await;
}

#[actix_web::test]
async fn the_oldest_output_makes_room_for_newer_commands() {
    const OUTPUT: usize = 100_000;
    let site = site(Quotas { command_bytes: 1_000_000, ..Quotas::default() }).await;
    let mut agent = site.agent().await;
    let mut ids: Vec<Uuid> = Vec::new();

    for _ in 0..20 {
        let id = site.running(&mut agent, "report").await;
        agent.send_output(id, Stream::Stdout, &"x".repeat(OUTPUT)).await;
        agent.send_result(id, CommandStatus::Succeeded, Some(0)).await;
        agent.expect_result_ack(id).await;
        ids.push(id);
    }

    eventually("room was made", || async { (site.used("command_bytes").await.0 <= 1_000_000).then_some(()) }).await;
    let oldest = site.command(ids[0]).await;
    assert_eq!((&oldest["output"], &oldest["truncated"]), (&json!(""), &json!(true)));
    assert_eq!((&oldest["status"], &oldest["exit_code"]), (&json!("succeeded"), &json!(0)));
    let newest = site.command(ids[19]).await;
    assert_eq!(text_of(&newest["output"]).len(), OUTPUT);
    assert_eq!(site.commands().await.len(), 20, "the commands themselves stay");
}

#[actix_web::test]
async fn commands_without_output_make_room_too() {
    let site = site(Quotas { command_bytes: 200_000, ..Quotas::default() }).await;
    let mut agent = site.agent().await;
    let text = format!("true # {}", "x".repeat(20_000));

    for _ in 0..20 {
        let id = site.running(&mut agent, &text).await;
        agent.finish(id).await;
    }

    eventually("room was made", || async { (site.used("command_bytes").await.0 <= 200_000).then_some(()) }).await;
    let left = site.commands().await.len();
    assert!((1..20).contains(&left), "{left} commands are left");
}

#[actix_web::test]
async fn commands_that_do_not_end_fill_the_quota_until_one_ends() {
    let site = site(Quotas { command_bytes: 200_000, ..Quotas::default() }).await;
    let mut agent = site.agent().await;
    let text = format!("sleep 60 # {}", "x".repeat(30_000));
    let mut running = Vec::new();
    for _ in 0..7 {
        running.push(site.running(&mut agent, &text).await);
    }
    let next = || site.post(site.commands_path() + "?wait=0").json(json!({"command": "true"}));

    // Over the quota by one: the service checks when it has written a part of it, and accepts commands until then.
    let answer = loop {
        let answer = next().send().await;
        if answer.status != 200 {
            break answer;
        }
        agent.expect_execute().await;
    };
    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("quota_exceeded")));
    let detail = text_of(&answer.json()["detail"]);
    assert!(detail.contains("have not ended") && detail.contains("--quota-command-storage"), "{detail}");
    for id in &running {
        assert_eq!(site.command(*id).await["status"], "running", "nothing that runs is lost");
    }

    for id in running.drain(..3) {
        agent.finish(id).await;
    }
    eventually("a command is accepted again", || async { (next().send().await.status == 200).then_some(()) }).await;
}

#[actix_web::test]
async fn a_batch_that_finds_no_room_is_refused_whole() {
    let site = site(Quotas { command_bytes: 50_000, ..Quotas::default() }).await;
    let other = site.another_server().expect(201).await;
    let batch = |bytes: usize| {
        site.post("/commands").json(json!({
            "server_ids": [site.server_id, uuid_of(&other["id"])], "command": format!("# {}", "x".repeat(bytes)),
        }))
    };

    batch(30_000).expect_error(400, "quota_exceeded").await;

    assert_eq!(site.used("command_bytes").await.0, 0);
    assert_eq!(site.used("batches").await.0, 0);
    batch(20_000).expect(201).await;
}

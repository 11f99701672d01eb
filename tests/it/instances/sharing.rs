//! Grants and teams: a right that is given or taken away at one instance is so at every other.

use std::time::{Duration, Instant};

use sea_orm::ConnectionTrait;
use serde_json::{Value, json};
use signalbox_protocol::agent::ServiceMessage;

use super::{A, B, C, Scene, told_of};
use crate::support::alerts::Threshold;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::rest::Call;
use crate::support::rows::writable_audit_log;
use crate::support::{eventually, registration, text_of};

/// A scene with somebody who is not the owner.
struct Guest {
    scene: Scene,
    token: String,
}

impl Guest {
    async fn start() -> Self {
        let scene = Scene::start().await;
        let made = scene.client(A).post("/auth/register").json(registration("guest")).expect(201).await;
        Self { token: text_of(&made["access_token"]), scene }
    }

    fn get(&self, instance: usize, path: &str) -> Call {
        self.scene.client(instance).get(path).bearer(&self.token)
    }

    async fn open(&self, instance: usize, path: &str) -> Dashboard {
        let (address, path) = (self.scene.cluster.address(instance), format!("/api/v1{path}"));
        Dashboard::open(address, &path, Pass::Header(&self.token), &[]).await.expect("a dashboard")
    }

    /// Waits until an instance answers like this.
    async fn until(&self, instance: usize, path: &str, status: u16) {
        eventually(&format!("{instance} answers {status}"), async || {
            (self.get(instance, path).send().await.status == status).then_some(())
        })
        .await;
    }

    async fn grant(&self, subject: Value, role: &str, rights: Value) -> String {
        self.grant_on(json!({"server_id": self.scene.server_id()}), subject, role, rights).await
    }

    async fn grant_on(&self, scope: Value, subject: Value, role: &str, rights: Value) -> String {
        let body = json!({"subject": subject, "scope": scope, "role": role, "rights": rights});
        text_of(&self.scene.post(A, "/grants").json(body).expect(201).await["id"])
    }

    /// Waits until an instance shows so many rights of an operator.
    async fn until_rights(&self, instance: usize, count: usize) {
        let path = format!("/servers/{}", self.scene.server_id());
        eventually("the rights are known", async || {
            let shown = self.get(instance, &path).send().await;
            let rights = (shown.status == 200).then(|| shown.json()["rights"].as_array().map_or(0, Vec::len));
            (rights == Some(count)).then_some(())
        })
        .await;
    }

    /// What the owner does.
    fn by_owner(&self, instance: usize, method: &str, path: &str) -> Call {
        self.scene.client(instance).call(method.parse().unwrap(), path).bearer(&self.scene.prepared.token)
    }

    async fn end(&self, grant: &str) {
        self.by_owner(A, "DELETE", &format!("/grants/{grant}")).expect(200).await;
    }
}

#[actix_web::test]
async fn a_grant_that_ends_at_one_closes_what_it_opened_at_the_others() {
    let guest = Guest::start().await;
    let id = guest.scene.server_id();
    let server = format!("/servers/{id}");
    let view = guest.grant(json!({"username": "guest"}), "viewer", json!([])).await;
    let read = guest.grant(json!({"username": "guest"}), "operator", json!(["logs"])).await;
    // The instance that made it knows at once.
    guest.get(A, &server).expect(200).await;
    for instance in [B, C] {
        guest.until_rights(instance, 1).await;
    }
    let mut metrics =
        [guest.open(B, &format!("/ws/metrics/{id}")).await, guest.open(C, &format!("/ws/metrics/{id}")).await];
    let mut logs = [guest.open(B, &format!("/ws/logs/{id}")).await, guest.open(C, &format!("/ws/logs/{id}")).await];
    let mut walls = [guest.open(B, "/ws/fleet").await, guest.open(C, "/ws/fleet").await];
    for wall in &mut walls {
        assert_eq!(wall.expect("fleet").await["servers"][0]["server_id"], json!(id));
    }

    guest.end(&read).await;
    for log in &mut logs {
        log.expect_close(4403).await;
    }
    guest.end(&view).await;
    for socket in &mut metrics {
        socket.expect("status").await;
        socket.expect_close(4404).await;
    }
    for wall in &mut walls {
        wall.until("servers").await;
    }
    for instance in [A, B, C] {
        guest.until(instance, &server, 404).await;
    }
}

#[actix_web::test]
async fn a_failover_that_lost_a_grant_ends_it_and_hides_no_later_change() {
    let guest = Guest::start().await;
    let server = format!("/servers/{}", guest.scene.server_id());
    let view = guest.grant(json!({"username": "guest"}), "viewer", json!([])).await;
    let lost = guest.grant(json!({"username": "guest"}), "operator", json!(["logs"])).await;
    for instance in [B, C] {
        guest.until_rights(instance, 1).await;
    }

    // As if the new primary did not have the last entry yet.
    let database = writable_audit_log(&guest.scene.cluster.storage.direct_url()).await;
    let lose = format!(
        "DELETE FROM grants WHERE id = '{lost}'; DELETE FROM audit_log WHERE seq = (SELECT seq FROM audit_head); \
         UPDATE audit_head SET seq = seq - 1, \
         hash = (SELECT hash FROM audit_log WHERE audit_log.seq = audit_head.seq - 1)"
    );
    database.execute_unprepared(&lose).await.unwrap();
    guest.end(&view).await;

    for instance in [A, B, C] {
        guest.until(instance, &server, 404).await;
    }
}

#[actix_web::test]
async fn a_terminal_and_a_command_at_the_others_close_with_the_right_and_the_agent_ends_the_terminal() {
    let guest = Guest::start().await;
    let id = guest.scene.server_id();
    let mut agent = guest.scene.agent(A).await;
    guest.grant(json!({"username": "guest"}), "viewer", json!([])).await;
    let use_both = guest.grant(json!({"username": "guest"}), "operator", json!(["commands", "terminal"])).await;
    for instance in [B, C] {
        guest.until_rights(instance, 2).await;
    }
    let running = guest.scene.running(A, &mut agent, "make").await;
    let mut command = guest.open(B, &format!("/ws/commands/{id}/{running}")).await;
    let mut terminal = guest.open(C, &format!("/ws/terminal/{id}?columns=80&rows=24")).await;
    let ServiceMessage::TerminalStart(start) = agent.next().await else { panic!("expected terminal_start") };

    guest.end(&use_both).await;

    command.expect_close(4403).await;
    terminal.expect_close(4403).await;
    let ended = loop {
        match agent.next().await {
            ServiceMessage::Credit { .. } => {}
            other => break other,
        }
    };
    assert_eq!(ended, ServiceMessage::TerminalStop { stream_id: start.stream_id });
    for instance in [A, B, C] {
        guest.get(instance, &format!("/commands/{id}")).expect_error(403, "forbidden").await;
    }
}

#[actix_web::test]
async fn a_tag_that_is_removed_and_a_team_that_is_deleted_close_what_they_opened_at_the_others() {
    let guest = Guest::start().await;
    let server = format!("/servers/{}", guest.scene.server_id());
    let team = text_of(&guest.scene.post(A, "/teams").json(json!({"name": "ops"})).expect(201).await["id"]);
    guest.by_owner(A, "PUT", &format!("/teams/{team}/members/guest")).expect(200).await;
    let path = format!("/ws/metrics/{}", guest.scene.server_id());

    guest.by_owner(A, "PUT", &server).json(json!({"tags": ["db"]})).expect(200).await;
    guest.grant_on(json!({"tag": "db"}), json!({"username": "guest"}), "viewer", json!([])).await;
    guest.until(B, &server, 200).await;
    let mut by_tag = guest.open(B, &path).await;
    by_tag.expect("status").await;
    guest.by_owner(C, "PUT", &server).json(json!({"tags": []})).expect(200).await;
    by_tag.expect_close(4404).await;

    guest.grant(json!({"team_id": team}), "viewer", json!([])).await;
    guest.until(C, &server, 200).await;
    let mut by_team = guest.open(C, &path).await;
    by_team.expect("status").await;
    guest.by_owner(B, "DELETE", &format!("/teams/{team}")).expect(200).await;
    by_team.expect_close(4404).await;

    for instance in [A, B, C] {
        guest.until(instance, &server, 404).await;
    }
}

#[actix_web::test]
async fn a_member_who_leaves_a_team_loses_its_servers_everywhere() {
    let guest = Guest::start().await;
    let server = format!("/servers/{}", guest.scene.server_id());
    let team = text_of(&guest.scene.post(A, "/teams").json(json!({"name": "ops"})).expect(201).await["id"]);
    guest.grant(json!({"team_id": team}), "viewer", json!([])).await;
    let member = format!("/teams/{team}/members/guest");
    let owner = &guest.scene.prepared.token;
    guest.scene.client(B).put(&member).bearer(owner).expect(200).await;
    for instance in [A, B, C] {
        guest.until(instance, &server, 200).await;
    }
    let mut metrics = guest.open(C, &format!("/ws/metrics/{}", guest.scene.server_id())).await;
    metrics.expect("status").await;

    guest.scene.client(B).delete(&member).bearer(&guest.token).expect(200).await;

    metrics.expect_close(4404).await;
    for instance in [A, B, C] {
        guest.until(instance, &server, 404).await;
    }
}

#[actix_web::test]
async fn alerts_of_a_shared_server_reach_dashboards_at_every_instance_until_the_grant_ends() {
    let guest = Guest::start().await;
    let mut probe = guest.scene.probe(A).await;
    probe.cpu(10.0).await;
    let alarms = guest.scene.alarms(A);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    probe.cpu_until(95.0, &alarms, threshold, "active").await;
    let mut walls = [guest.open(B, "/ws/alerts").await, guest.open(C, "/ws/alerts").await];
    let view = guest.grant(json!({"username": "guest"}), "viewer", json!([])).await;
    // A socket that opens slowly has it at the beginning, and another one when it hears of the grant.
    for wall in &mut walls {
        told_of(wall, "active").await;
    }

    probe.cpu_until(10.0, &alarms, threshold, "resolved").await;
    let active = probe.cpu_until(95.0, &alarms, threshold, "active").await;

    for (wall, instance) in walls.iter_mut().zip([B, C]) {
        told_of(wall, "resolved").await;
        let told = told_of(wall, "active").await;
        assert_eq!((&told["id"], &told["owner"]["username"]), (&active["id"], &active["owner"]["username"]));
        assert_eq!(guest.get(instance, "/alerts").expect(200).await[0]["id"], active["id"]);
    }
    guest.end(&view).await;
    for (wall, instance) in walls.iter_mut().zip([B, C]) {
        wall.until("alerts").await;
        assert_eq!(guest.get(instance, "/alerts").expect(200).await, json!([]));
    }
}

/// Prints how long it takes: `SIGNALBOX_ROUNDS=20 scripts/with-postgres cargo nextest run --no-capture -E 'test(round_after_round)'`.
#[actix_web::test]
async fn sockets_at_the_others_close_with_their_grant_round_after_round() {
    let guest = Guest::start().await;
    let id = guest.scene.server_id();
    let server = format!("/servers/{id}");
    let rounds = std::env::var("SIGNALBOX_ROUNDS").map_or(2, |rounds| rounds.parse().expect("a number of rounds"));
    let mut times: Vec<Duration> = Vec::new();

    for _ in 0..rounds {
        let grant = guest.grant(json!({"username": "guest"}), "viewer", json!([])).await;
        let mut sockets = Vec::new();
        for instance in [A, B, C] {
            guest.until(instance, &server, 200).await;
            let mut socket = guest.open(instance, &format!("/ws/metrics/{id}")).await;
            socket.expect("status").await;
            sockets.push(socket);
        }
        let began = Instant::now();
        guest.end(&grant).await;
        for mut socket in sockets {
            socket.expect_close(4404).await;
        }
        times.push(began.elapsed());
    }

    times.sort_unstable();
    let [median, longest] = [times.len() / 2, times.len() - 1].map(|place| times[place].as_millis());
    eprintln!(
        "until every instance has closed its socket, of {rounds} rounds: median {median} ms, longest {longest} ms"
    );
}

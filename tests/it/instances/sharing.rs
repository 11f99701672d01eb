//! Grants and teams: a right that is given or taken away at one instance is so at every other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::alerts::tell_until;
use super::{A, B, C, Scene, told_of};
use crate::support::alerts::Threshold;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::rest::Call;
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
        let scope = json!({"server_id": self.scene.server_id()});
        let body = json!({"subject": subject, "scope": scope, "role": role, "rights": rights});
        text_of(&self.scene.post(A, "/grants").json(body).expect(201).await["id"])
    }

    async fn end(&self, grant: &str) {
        let path = format!("/grants/{grant}");
        self.scene.client(A).delete(path).bearer(&self.scene.prepared.token).expect(200).await;
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
        guest.until(instance, &server, 200).await;
        eventually("the second grant is known", async || {
            let shown = guest.get(instance, &server).expect(200).await;
            (shown["rights"] == json!(["logs"])).then_some(())
        })
        .await;
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
    let mut walls = [guest.open(B, "/ws/alerts").await, guest.open(C, "/ws/alerts").await];
    let view = guest.grant(json!({"username": "guest"}), "viewer", json!([])).await;
    for wall in &mut walls {
        wall.until("alerts").await;
    }
    let threshold = guest.scene.alarms(A).add(Threshold::cpu(90.0)).await;

    let active = tell_until(&mut probe, 95.0, &guest.scene.alarms(A), threshold, "active").await;

    for (wall, instance) in walls.iter_mut().zip([B, C]) {
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

//! PostgreSQL that is away: agents and dashboards continue, REST reports it, and nothing is lost when it is back.

use std::time::Duration;

use actix_web::rt;
use serde_json::{Value, json};
use signalbox_agent::{Config, Exit, Interval, Timing};
use signalbox_protocol::agent::ServiceMessage;
use signalbox_protocol::{Encoding, Sample, Timestamp};
use tokio::sync::oneshot;

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::command_line::{run, signalbox};
use crate::support::proxy::Proxy;
use crate::support::site::Site;
use crate::support::socket::Received;
use crate::support::{Storage, TestService, eventually, in_time};

/// The code of the close that asks an agent to send again.
const OVERLOADED: u16 = 1013;

/// Samples of a message, and messages that are more than a session may have waiting.
const IN_ONE: i64 = 100;
const MANY: u64 = 80;

/// The address of a database, through a proxy in front of it; none on SQLite, which cannot be away.
pub(crate) async fn through_proxy(storage: &Storage) -> Option<(Proxy, String)> {
    let url = storage.config().database_url();
    let (before, database) = url.strip_prefix("postgres://")?.split_once('/').unwrap();
    let (user, address) = before.rsplit_once('@').unwrap();
    let proxy = Proxy::to(address.replace("localhost", "127.0.0.1").parse().unwrap()).await;
    let through = format!("postgres://{user}@{}/{database}", proxy.address);
    Some((proxy, through))
}

struct Scene {
    site: Site,
    proxy: Proxy,
    /// When the oldest sample was taken.
    began: Timestamp,
}

impl Scene {
    async fn start() -> Option<Self> {
        let storage = Storage::fresh().await;
        let (proxy, through) = through_proxy(&storage).await?;
        let service = TestService::start_on(storage, |config| config.database_url = Some(through.into())).await;
        let owner = service.register("owner").await;
        let (server_id, key) = service.server_with_key(&owner, "web-1").await;
        // Within one hour, and not of the future: a tenth of a second apart.
        let began = Timestamp::now().plus_millis(-100 * IN_ONE * (MANY as i64 + 10));
        Some(Self { site: Site { service, owner, server_id, key }, proxy, began })
    }

    /// The samples of a message.
    fn samples(&self, seq: u64) -> Vec<Sample> {
        let first = i64::try_from(seq).unwrap() * IN_ONE;
        (first..first + IN_ONE).map(|number| sample_at(self.began.plus_millis(100 * number))).collect()
    }

    async fn agent(&self) -> FakeAgent {
        self.site.agent_in(Encoding::MessagePack).await
    }

    /// Waits until REST and `/readyz` say that the database is away.
    async fn is_known_to_be_away(&self) {
        let Site { service, owner, .. } = &self.site;
        eventually("the database is known to be away", async || {
            let answer = service.root.get("/readyz").send().await;
            (answer.status == 503 && answer.json()["part"] == "database").then_some(())
        })
        .await;
        let refused = in_time("a refusal", service.client.get("/servers").bearer(&owner.token).send()).await;
        assert_eq!((refused.status, &refused.json()["code"]), (503, &Value::from("busy")), "{refused}");
        assert_eq!(refused.header("Retry-After"), "2");
    }

    async fn is_ready(&self) {
        eventually("the service is ready", async || {
            let answer = self.site.service.root.get("/readyz").send().await;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    /// The times of all samples of the messages up to `seq`.
    fn times(&self, seq: u64) -> Vec<String> {
        (1..=seq).flat_map(|seq| self.samples(seq)).map(|sample| sample.timestamp.to_string()).collect()
    }

    async fn kept(&self) -> Vec<String> {
        let history = self.site.history("resolution=raw&max_points=20000").await;
        history.iter().map(|sample| crate::support::text_of(&sample["timestamp"])).collect()
    }
}

/// The remaining messages of the service to the agent. Returns the last number that it acknowledged.
async fn last_words(agent: &mut FakeAgent) -> u64 {
    let mut acknowledged = 0;
    loop {
        match in_time("an end", agent.socket.receive()).await {
            Received::Message(message) => {
                if let Ok(ServiceMessage::Ack { seq }) = rmp_serde::from_slice(&message.into_data()) {
                    acknowledged = seq;
                }
            }
            Received::Closed(code) => {
                assert_eq!(code, OVERLOADED);
                return acknowledged;
            }
            end => panic!("{end:?}"),
        }
    }
}

/// The agent continues, beyond every bound; then the database comes back.
async fn outage(scene: &Scene, cut: impl FnOnce(&Proxy)) {
    let mut dashboard = scene.site.dashboard().await;
    let mut agent = scene.agent().await;
    agent.store(1, scene.samples(1)).await;

    cut(&scene.proxy);
    scene.is_known_to_be_away().await;
    for seq in 2..=MANY {
        agent.send_metrics(seq, scene.samples(seq)).await;
    }

    let newest = scene.samples(MANY).pop().unwrap().timestamp.to_string();
    while dashboard.until("metrics").await["timestamp"] != newest.as_str() {}
    scene.proxy.heal();
    let acknowledged = last_words(&mut agent).await;
    assert!(acknowledged < MANY, "more was waiting than is held");
    scene.is_ready().await;
    let mut agent = scene.agent().await;
    for seq in acknowledged + 1..=MANY {
        agent.send_metrics(seq, scene.samples(seq)).await;
    }
    agent.expect_ack(MANY).await;
    assert_eq!(scene.kept().await, scene.times(MANY));
}

#[actix_web::test]
async fn an_outage_that_refuses_loses_nothing_and_stops_no_dashboard() {
    let Some(scene) = Scene::start().await else { return };

    outage(&scene, Proxy::refuse).await;
}

#[actix_web::test]
async fn an_outage_that_says_nothing_loses_nothing_and_stops_no_dashboard() {
    let Some(scene) = Scene::start().await else { return };

    outage(&scene, Proxy::silence).await;
}

/// How long the agent of the next test waits for an acknowledgement: longer than a slow machine takes for one.
const PATIENCE_OF_AGENT: Duration = Duration::from_secs(4);

#[actix_web::test]
async fn an_outage_that_outlasts_an_agents_patience_stops_no_dashboard() {
    let Some(scene) = Scene::start().await else { return };
    let url = format!("http://{}", scene.site.service.address);
    let interval = Duration::from_millis(100);
    let timing = Timing { unacknowledged: PATIENCE_OF_AGENT, doubt: interval, ..Timing::default() };
    let config = Config { interval: Interval::of(interval), timing, ..Config::new(&url, &scene.site.key).unwrap() };
    let (stop, stopped) = oneshot::channel::<()>();
    let agent = rt::spawn(signalbox_agent::run(config, async { _ = stopped.await }));
    let mut dashboard = scene.site.dashboard().await;
    dashboard.until("metrics").await;

    scene.proxy.refuse();
    scene.is_known_to_be_away().await;
    // As many samples as it takes in twice its patience.
    for _ in 0..(2 * PATIENCE_OF_AGENT.as_millis() / interval.as_millis()) {
        dashboard.until("metrics").await;
    }

    scene.proxy.heal();
    scene.is_ready().await;
    stop.send(()).unwrap();
    assert_eq!(in_time("the end of the agent", agent).await.unwrap(), Exit::Stopped);
}

#[actix_web::test]
async fn a_short_outage_is_waited_for() {
    let Some(scene) = Scene::start().await else { return };
    let mut agent = scene.agent().await;
    agent.store(1, scene.samples(1)).await;

    scene.proxy.refuse();
    agent.send_metrics(2, scene.samples(2)).await;
    scene.proxy.heal();

    agent.expect_ack(2).await;
    assert_eq!(scene.kept().await, scene.times(2));
}

#[actix_web::test]
async fn connections_that_are_reset_are_replaced() {
    let Some(scene) = Scene::start().await else { return };
    let mut agent = scene.agent().await;
    agent.store(1, scene.samples(1)).await;

    scene.proxy.reset();

    agent.store(2, scene.samples(2)).await;
    scene.is_ready().await;
    scene.site.read("/servers").await;
}

/// This many writes in a row show that every connection accepts them: a service has far fewer here.
const IN_A_ROW: usize = 20;

#[actix_web::test]
async fn connections_to_a_server_that_only_reads_are_replaced_when_one_accepts_writes() {
    let storage = Storage::fresh().await;
    let url = storage.direct_url();
    // An embedded database has no other server.
    let Some((_, name)) = url.strip_prefix("postgres://").and_then(|rest| rest.rsplit_once('/')) else { return };
    let service = TestService::start_on(storage, |_| {}).await;
    let owner = service.register("owner").await;
    let add = || {
        let body = json!({"name": "web-1", "host": "192.0.2.10"});
        service.client.post("/servers").bearer(&owner.token).json(body).send()
    };
    // As in a failover: all sessions end, and new ones are of a server that only reads.
    let end_sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let only_reads = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    service.storage().execute(&[&only_reads, end_sessions]).await;
    eventually("it is read", async || {
        (service.client.get("/servers").bearer(&owner.token).send().await.status == 200).then_some(())
    })
    .await;
    assert_eq!(add().await.status, 503);

    // Sessions that have begun stay as they are.
    let writes = format!("BEGIN READ WRITE; ALTER DATABASE {name} SET default_transaction_read_only = off; COMMIT");
    service.storage().execute(&[&writes]).await;

    eventually("every connection accepts writes", async || {
        for _ in 0..IN_A_ROW {
            if add().await.status != 201 {
                return None;
            }
        }
        Some(())
    })
    .await;
}

#[actix_web::test]
async fn a_start_without_a_database_says_so_in_one_line() {
    let storage = Storage::fresh().await;
    let Some((proxy, through)) = through_proxy(&storage).await else { return };
    let start = || {
        let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(storage.path());
        storage.named_to(&mut command);
        command.env("SIGNALBOX_DATABASE_URL", &through);
        run(command)
    };

    proxy.refuse();
    start().await.assert_refused("cannot open the database");
    proxy.silence();
    start().await.assert_refused("cannot open the database");
}

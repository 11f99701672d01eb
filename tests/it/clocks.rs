//! Clocks that are wrong, that jump and that stop: the real service's and the real agent's, as programs of their own.

mod drift;
mod fresh;
mod pauses;
mod stopped;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use signalbox::store::Store;
use signalbox_protocol::{Encoding, Timestamp};
use tempfile::TempDir;

use crate::real_agent::{agent_program, unprivileged};
use crate::support::agent::{FakeAgent, auth, sample_at};
use crate::support::clock::TestClock;
use crate::support::command_line::{Launched, signalbox};
use crate::support::exposition::Exposition;
use crate::support::port::Port;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::site::Site;
use crate::support::{Client, PASSWORD, TestService, eventually, text_of};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const YEAR_MS: i64 = 365 * DAY_MS;

/// The code of the close that asks an agent to come back.
const OVERLOADED: u16 = 1013;

/// A service and its environment, each program with a clock of its own.
struct Host {
    service: ServiceProcess,
    prepared: Prepared,
    data_dir: TempDir,
    state_dir: TempDir,
    service_clock: TestClock,
    agent_clock: TestClock,
    /// Where the service is, or was and will be.
    port: Port,
}

async fn serve(data_dir: &TempDir, clock: &TestClock, listen: SocketAddr) -> ServiceProcess {
    let mut command = signalbox(&["serve", "--listen", &listen.to_string(), "--data-dir"]);
    command.arg(data_dir.path());
    clock.rule(&mut command);
    ServiceProcess::launched(command).await
}

impl Host {
    async fn start() -> Self {
        Self::start_at(0).await
    }

    /// Installed on a machine whose clock is so far ahead.
    async fn start_at(ahead_ms: i64) -> Self {
        let (data_dir, state_dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        // The agent's user is another one than the test's.
        fs::set_permissions(&state_dir, fs::Permissions::from_mode(0o777)).unwrap();
        let (service_clock, agent_clock) = (TestClock::new(), TestClock::new());
        service_clock.set_ms(ahead_ms);
        let port = Port::reserve();
        let service = serve(&data_dir, &service_clock, port.address).await;
        let prepared = service.prepare().await;
        Self { service, prepared, data_dir, state_dir, service_clock, agent_clock, port }
    }

    /// Ends the service and starts it again at the same address, at another time.
    async fn restart_at(self, ahead_ms: i64) -> Self {
        assert_eq!(self.service.terminate().await.code, Some(0));
        self.service_clock.set_ms(ahead_ms);
        let service = serve(&self.data_dir, &self.service_clock, self.port.address).await;
        Self { service, ..self }
    }

    /// The real agent, twice a second.
    fn agent(&self) -> Launched {
        let mut command = unprivileged(&agent_program());
        command.env_clear().args(["--url", &format!("http://{}", self.service.address), "--key", &self.prepared.key]);
        command.arg("--state-dir").arg(self.state_dir.path().join("state")).args(["--interval", "0.5"]);
        self.agent_clock.rule(&mut command);
        Launched::start(command)
    }

    /// Signs in again: a token that was signed at another time is not valid now.
    async fn sign_in(&mut self) {
        let form = [("username", "owner"), ("password", PASSWORD)];
        let tokens = self.service.client.post("/auth/login").form(&form).expect(200).await;
        self.prepared.token = text_of(&tokens["access_token"]);
    }

    async fn read(&self, path: &str) -> Value {
        self.service.read(&self.prepared, path).await
    }

    fn of_server(&self, rest: &str) -> String {
        format!("/metrics/{}{rest}", self.prepared.server_id)
    }

    /// When the latest sample was taken, by the agent's clock; none before the first.
    async fn latest(&self) -> Option<Timestamp> {
        let answer = self.service.client.get(self.of_server("")).bearer(&self.prepared.token).send().await;
        if answer.status != 200 {
            return None;
        }
        Timestamp::parse(&text_of(&answer.json()["timestamp"]))
    }

    /// Returns when a sample is shown that the agent took now, by its own clock.
    async fn until_live(&self, what: &str) {
        eventually(&format!("{what}: live samples"), async || {
            let age_ms = self.agent_clock.now().millis_since(self.latest().await?);
            (-2_000..5_000).contains(&age_ms).then_some(())
        })
        .await;
    }

    /// Returns when the server shows how wrong its clock is.
    async fn until_offset(&self, what: &str) {
        let expected_ms = self.agent_clock.ahead_ms() - self.service_clock.ahead_ms();
        let path = format!("/servers/{}", self.prepared.server_id);
        eventually(&format!("{what}: the clock's offset"), async || {
            let offset_ms = self.read(&path).await["agent"]["clock_offset_ms"].as_i64()?;
            ((offset_ms - expected_ms).abs() < 5_000).then_some(())
        })
        .await;
    }

    async fn until_up(&self, what: &str) {
        eventually(&format!("{what}: up"), async || {
            let answer =
                self.service.client.get(self.of_server("/prometheus")).bearer(&self.prepared.token).send().await;
            let told = Exposition::parse(&answer.text);
            (told.value("signalbox_server_up", &[]) == "1").then_some(())
        })
        .await;
    }

    /// The events of its clock, newest first: whether it was wrong from then on.
    async fn clock_events(&self) -> Vec<bool> {
        let events = self.read(&format!("/servers/{}/events?kind=clock", self.prepared.server_id)).await;
        events.as_array().unwrap().iter().map(|event| event["detail"]["is_off"] == true).collect()
    }

    async fn alerts(&self) -> Vec<Value> {
        self.read("/alerts").await.as_array().unwrap().clone()
    }

    async fn threshold(&self, metric: &str, comparison: &str, value: f64) {
        let body = json!({
            "server_id": self.prepared.server_id, "metric_type": metric, "comparison": comparison,
            "threshold_value": value,
        });
        self.service.client.post("/alerts/thresholds").bearer(&self.prepared.token).json(body).expect(201).await;
    }

    /// When the samples in a range were taken.
    async fn kept(&self, (start, end): (Timestamp, Timestamp)) -> Vec<String> {
        let rest = format!("/history?resolution=raw&max_points=20000&start={start}&end={end}");
        let history = self.read(&self.of_server(&rest)).await;
        history.as_array().unwrap().iter().map(|sample| text_of(&sample["timestamp"])).collect()
    }
}

/// A counter of a service.
async fn counted(service: &ServiceProcess, name: &str) -> f64 {
    let answer = Client::new(format!("http://{}", service.address)).get("/metrics").send().await;
    let line = answer.text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    line.and_then(|line| line.split_whitespace().last()?.parse().ok()).unwrap_or_default()
}

#[actix_web::test]
async fn a_false_time_at_a_start_deletes_nothing() {
    let mut site = Site::start().await;
    let start = Timestamp::now().plus_millis(-3 * DAY_MS);
    let samples: Vec<_> = (0..20).map(|number| sample_at(start.plus_millis(number * 10 * MINUTE_MS))).collect();
    let mut agent = site.agent().await;
    agent.store(1, samples.clone()).await;
    site.service.state.metrics.archive.settle().await.unwrap();
    let (client, token) = (&site.service.client, &site.owner.token);
    let threshold = json!({
        "server_id": site.server_id, "metric_type": "cpu", "comparison": "gt", "threshold_value": 5.0,
    });
    client.post("/alerts/thresholds").bearer(token).json(threshold).expect(201).await;
    agent.store(2, vec![sample_at(Timestamp::now())]).await;
    let raised = eventually("an alert", async || site.read("/alerts").await.as_array()?.first().cloned()).await;
    let resolved = format!("/alerts/{}/resolve", text_of(&raised["id"]));
    client.post(resolved).bearer(token).expect(200).await;
    let events = format!("/servers/{}/events?kind=online", site.server_id);
    let clock = TestClock::new();

    for false_by_ms in [15 * DAY_MS, YEAR_MS, 73 * YEAR_MS] {
        let Site { service, owner, server_id, key } = site;
        let storage = service.stop().await;
        let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(storage.path());
        storage.named_to(&mut command);
        clock.set_ms(false_by_ms);
        clock.rule(&mut command);
        let false_service = ServiceProcess::launched(command).await;
        // The first pass drops what is too old, and has ended when there is a second one.
        eventually("a pass over the history has ended", async || {
            (counted(&false_service, "signalbox_history_step_seconds_count").await >= 2.0).then_some(())
        })
        .await;
        assert_eq!(false_service.terminate().await.code, Some(0));
        site = Site { service: TestService::start_on(storage, |_| {}).await, owner, server_id, key };

        let range = format!("resolution=raw&max_points=20000&start={start}&end={}", start.plus_millis(DAY_MS));
        assert_eq!(site.history(&range).await.len(), samples.len(), "{false_by_ms}");
        // Other things with a retention: resolved alerts, events, and logins.
        for path in ["/alerts?status=resolved", &events, "/auth/sessions"] {
            let left = site.read(path).await;
            assert!(!left.as_array().unwrap().is_empty(), "{path} after {false_by_ms} ms: {left}");
        }
    }
}

#[actix_web::test]
async fn a_service_whose_clock_is_behind_shows_what_comes_and_loses_nothing() {
    let mut host = Host::start().await.restart_at(-2 * DAY_MS).await;
    host.sign_in().await;
    let began = Timestamp::now();
    let _agent = host.agent();
    host.until_live("behind").await;
    // Some that come while nothing is stored.
    let shown = host.latest().await.unwrap();
    eventually("more samples", async || host.latest().await.filter(|at| at.millis_since(shown) > 2_000)).await;
    let put_right = Timestamp::now();
    assert!(host.kept((began, put_right)).await.is_empty(), "nothing of the future is kept");

    host.service_clock.set_ms(0);
    host.sign_in().await;

    eventually("what was not kept comes again", async || {
        let kept = host.kept((began, put_right)).await;
        (kept.len() >= 4 && kept.contains(&shown.to_string())).then_some(())
    })
    .await;
    host.until_live("put right").await;
}

#[actix_web::test]
async fn an_agents_clock_that_jumps_is_shown_and_its_samples_stay_live() {
    let host = Host::start().await;
    host.threshold("offline", "gt", 20.0).await;
    let _agent = host.agent();
    host.until_live("at first").await;

    for ahead_ms in [MINUTE_MS, -2 * MINUTE_MS, 2 * HOUR_MS, 0, -2 * HOUR_MS, -2 * DAY_MS, 0] {
        let what = format!("the agent is {ahead_ms} ms ahead");
        host.agent_clock.set_ms(ahead_ms);

        host.until_offset(&what).await;
        host.until_live(&what).await;
        host.until_up(&what).await;
    }
    // A crossing now raises its alert now, whatever the time there is.
    host.agent_clock.set_ms(-3 * MINUTE_MS);
    host.until_offset("three minutes behind").await;
    host.threshold("memory", "gt", 0.0).await;

    let alerts = eventually("an alert", async || Some(host.alerts().await).filter(|alerts| !alerts.is_empty())).await;
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!(alerts[0]["metric_type"], "memory");
}

#[actix_web::test]
async fn a_service_whose_clock_jumps_continues() {
    let mut host = Host::start().await;
    host.threshold("offline", "gt", 20.0).await;
    let _agent = host.agent();
    host.until_live("at first").await;
    let began = Timestamp::now();

    for ahead_ms in [MINUTE_MS, -MINUTE_MS, 2 * HOUR_MS, -2 * HOUR_MS, 2 * DAY_MS, YEAR_MS, -2 * DAY_MS, 0] {
        let what = format!("the service is {ahead_ms} ms ahead");
        host.service_clock.set_ms(ahead_ms);
        host.sign_in().await;

        host.until_offset(&what).await;
        host.until_live(&what).await;
        host.until_up(&what).await;
    }

    assert_eq!(host.alerts().await, Vec::<Value>::new());
    assert_eq!(host.clock_events().await, Vec::<bool>::new(), "no agent is blamed");
    let ended = Timestamp::now();
    let expected = usize::try_from(ended.millis_since(began) / 500).unwrap();
    let kept = eventually("every sample is kept", async || {
        let kept = host.kept((began, ended)).await;
        // The machine that runs all this may have skipped half of them.
        (kept.len() + 2 + expected / 2 >= expected).then_some(kept)
    })
    .await;
    let times: Vec<Timestamp> = kept.iter().map(|text| Timestamp::parse(text).unwrap()).collect();
    let longest = times.windows(2).map(|two| two[1].millis_since(two[0])).max().unwrap();
    assert!(longest < 15_000, "{longest} ms are missing");
}

#[actix_web::test]
async fn what_a_clock_that_was_ahead_sealed_stays_readable() {
    let mut host = Host::start().await;
    let _agent = host.agent();
    host.until_live("at first").await;
    let (began, ahead_at) = (host.latest().await.unwrap(), Timestamp::now());

    // Two days ahead, for longer than it takes until today's hours are sealed and put together.
    host.skip().await;
    host.service_clock.set_ms(2 * DAY_MS);
    eventually("an hour is sealed", async || {
        (counted(&host.service, "signalbox_history_hours_sealed_total").await >= 1.0).then_some(())
    })
    .await;
    let steps = counted(&host.service, "signalbox_history_step_seconds_count").await;
    eventually("its day is put together", async || {
        (counted(&host.service, "signalbox_history_step_seconds_count").await > steps).then_some(())
    })
    .await;
    let ahead_ms = Timestamp::now().millis_since(ahead_at);
    host.service_clock.set_ms(0);
    host.sign_in().await;
    host.until_live("put right").await;

    let kept = host.kept((began, Timestamp::now())).await;
    assert_eq!(kept.first(), Some(&began.to_string()), "{kept:?}");
    let times: Vec<Timestamp> = kept.iter().map(|text| Timestamp::parse(text).unwrap()).collect();
    let longest = times.windows(2).map(|two| two[1].millis_since(two[0])).max().unwrap();
    assert!(longest < (ahead_ms / 2).clamp(5_000, 15_000), "{longest} ms are missing of {ahead_ms}");
}

#[actix_web::test]
async fn a_first_start_in_1970_is_remembered_as_no_present() {
    let in_1970_ms = DAY_MS - Timestamp::now().as_millis();
    let host = Host::start_at(in_1970_ms).await;
    let _agent = host.agent();
    host.until_live("in 1970").await;

    assert_eq!(host.service.terminate().await.code, Some(0));

    let url = format!("sqlite://{}/signalbox.db", host.data_dir.path().display());
    let saved = Store::open(&url, Default::default()).await.unwrap().saved_clock().await.unwrap().unwrap();
    let age_ms = Timestamp::now().millis_since(Timestamp::from_millis(saved.certain_ms));
    assert!((0..20 * YEAR_MS).contains(&age_ms), "the program was built {age_ms} ms ago");
}

#[actix_web::test]
async fn a_key_that_has_expired_by_a_false_time_sends_no_agent_away_for_good() {
    let host = Host::start().await;
    let expires_at = Timestamp::now().plus_millis(DAY_MS);
    let body = json!({"server_id": host.prepared.server_id, "name": "short", "expires_at": expires_at});
    let key = host.service.client.post("/api-keys").bearer(&host.prepared.token).json(body).expect(201).await;
    let key = text_of(&key["key"]);
    let mut first = FakeAgent::online(host.service.address, &key).await;

    host.service_clock.set_ms(2 * DAY_MS);
    let mut second = FakeAgent::connect(host.service.address, Encoding::Json).await;
    second.send(&auth(&key)).await;

    assert_eq!(second.close_code().await, OVERLOADED);
    host.service_clock.set_ms(0);
    first.store(1, vec![sample_at(Timestamp::now())]).await;
    FakeAgent::online(host.service.address, &key).await;
}

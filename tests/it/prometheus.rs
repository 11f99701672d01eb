//! `GET /metrics/prometheus` and `GET /metrics/{server_id}/prometheus`: what Prometheus scrapes.

use std::collections::BTreeSet;

use sea_orm::{ConnectionTrait, Database};
use serde_json::json;
use signalbox::audit::Actor;
use signalbox::store::NewServer;
use signalbox_protocol::sample::{DiskUsage, NetworkUsage};
use signalbox_protocol::{Encoding, Sample, Timestamp};
use uuid::Uuid;

use crate::support::agent::{FakeAgent, agent_info, sample_aged};
use crate::support::exposition::Exposition;
use crate::support::site::Site;
use crate::support::storage::direct;
use crate::support::{Account, TestService, text_of};

/// More servers than are read at once.
const MANY: usize = 501;

/// The exposition of all of `account`'s servers.
async fn scrape(service: &TestService, account: &Account) -> Exposition {
    scrape_at(service, account, "/metrics/prometheus").await
}

async fn scrape_one(service: &TestService, account: &Account, server_id: Uuid) -> Exposition {
    scrape_at(service, account, &format!("/metrics/{server_id}/prometheus")).await
}

async fn scrape_at(service: &TestService, account: &Account, path: &str) -> Exposition {
    let answer = service.client.get(path).bearer(&account.token).expect_answer(200).await;
    assert_eq!(answer.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(answer.header("Cache-Control"), "no-store");
    Exposition::parse(&answer.text)
}

fn label(server_id: Uuid) -> String {
    server_id.to_string()
}

#[actix_web::test]
async fn a_server_is_exposed_under_node_exporters_names() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let sample = Sample { uptime_seconds: 3_600, load_average: [0.25, 1.0, 1.5], ..sample_aged(1) };
    agent.store(1, vec![sample.clone()]).await;

    let told = scrape_one(&site.service, &site.owner, site.server_id).await;

    let id = label(site.server_id);
    let labels = [("instance", "web-1"), ("server_id", id.as_str())];
    let of_labels = told.values_of_label("instance");
    assert_eq!((of_labels, told.values_of_label("server_id")), ([labels[0].1].into(), [labels[1].1].into()));
    assert!(told.series.iter().all(|series| series.labels.contains_key("instance")), "{told:?}");
    assert!(told.series.iter().all(|series| series.labels.contains_key("server_id")), "{told:?}");
    let boot = (sample.timestamp.as_seconds() - 3_600).to_string();
    let expected = [
        ("signalbox_server_up", "1"),
        ("node_load1", "0.25"),
        ("node_load5", "1"),
        ("node_load15", "1.5"),
        ("node_boot_time_seconds", &boot),
        ("signalbox_cpu_usage_ratio", "0.125"),
        ("node_memory_MemTotal_bytes", "8000000000"),
        ("node_memory_MemAvailable_bytes", "4000000000"),
    ];
    for (name, value) in expected {
        assert_eq!(told.value(name, &labels), value, "{name}");
        assert_eq!(told.families[name], "gauge", "{name}");
    }
    assert_eq!(told.value("node_filesystem_avail_bytes", &[("mountpoint", "/")]), "600");
    assert_eq!(told.value("node_network_receive_bytes_total", &[("device", "eth0")]), "200");
    assert_eq!(told.families["node_network_receive_bytes_total"], "counter");
    let system = agent_info();
    let uname = [("nodename", &*system.hostname), ("release", &*system.kernel), ("machine", &*system.arch)];
    assert_eq!(told.value("node_uname_info", &uname), "1");
}

#[actix_web::test]
async fn all_servers_are_exposed_in_one_answer() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let silent_id = site.service.server(&site.owner, "web-3").await;
    let mut agent = site.agent().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    agent.store(1, vec![sample_aged(1)]).await;
    other.store(1, vec![Sample { cpu_percent: 99.0, ..sample_aged(1) }]).await;

    let told = scrape(&site.service, &site.owner).await;

    for (id, up, cpu) in [(site.server_id, "1", &["0.125"][..]), (other_id, "1", &["0.99"]), (silent_id, "0", &[])] {
        let id = label(id);
        let labels = [("server_id", id.as_str())];
        assert_eq!(told.value("signalbox_server_up", &labels), up);
        assert_eq!(told.values("signalbox_cpu_usage_ratio", &labels), cpu);
    }
    let of_silent = told.series.iter().filter(|series| series.labels["server_id"] == label(silent_id));
    assert_eq!(of_silent.count(), 1);
    assert_eq!(told.values_of_label("instance"), ["web-1", "web-2", "web-3"].into());
}

#[actix_web::test]
async fn one_server_without_samples_answers_as_its_latest_metrics_do() {
    let site = Site::start().await;
    let _agent = site.agent().await;

    let path = format!("/metrics/{}/prometheus", site.server_id);
    site.service.client.get(path).bearer(&site.owner.token).expect_error(404, "no_metrics").await;

    let told = scrape(&site.service, &site.owner).await;
    assert_eq!(told.series.len(), 1);
    assert_eq!(told.value("signalbox_server_up", &[]), "0");
}

#[actix_web::test]
async fn an_offline_server_is_only_exposed_as_down() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let last = sample_aged(1);
    agent.store(1, vec![last.clone()]).await;
    drop(agent);
    site.until_status("offline").await;

    for told in [scrape(&site.service, &site.owner).await, scrape_one(&site.service, &site.owner, site.server_id).await]
    {
        assert_eq!(told.series.len(), 2, "{told:?}");
        assert_eq!(told.value("signalbox_server_up", &[]), "0");
        let at = told.value("signalbox_server_last_sample_timestamp_seconds", &[]);
        assert_eq!(at.parse::<f64>().unwrap(), last.timestamp.as_millis() as f64 / 1000.0);
    }
}

#[actix_web::test]
async fn a_restarted_service_remembers_when_the_last_sample_was() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let last = sample_aged(1);
    agent.store(1, vec![last.clone()]).await;

    let site = site.restart().await;

    let told = scrape(&site.service, &site.owner).await;
    assert_eq!(told.value("signalbox_server_up", &[]), "0");
    // Nothing is looked up for a disconnected server: the answer says when its agent was last heard.
    let at = told.value("signalbox_server_last_sample_timestamp_seconds", &[]).parse::<f64>().unwrap();
    let (taken, now) = (last.timestamp.as_millis(), Timestamp::now().as_millis());
    assert!((taken as f64..=now as f64).contains(&(at * 1000.0).round()), "{at} is not between {taken} and {now}");
}

#[actix_web::test]
async fn a_connected_agent_that_is_catching_up_does_not_look_alive_yet() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    agent.store(1, vec![sample_aged(600)]).await;
    assert_eq!(scrape(&site.service, &site.owner).await.value("signalbox_server_up", &[]), "0");

    agent.store(2, vec![sample_aged(0)]).await;
    assert_eq!(scrape(&site.service, &site.owner).await.value("signalbox_server_up", &[]), "1");
}

#[actix_web::test]
async fn a_slow_interval_and_a_wrong_clock_are_allowed_for() {
    let site = Site::start().await;
    let clock = Timestamp::now().plus_millis(-3_600_000);
    let slow = json!({
        "api_key": site.key, "protocol": 1, "agent": agent_info(), "sent_at": clock.to_string(),
        "sample_interval_seconds": 300,
    });
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
    agent.send_value(&json!({"type": "auth", "data": slow})).await;
    assert_eq!(agent.next_value().await["data"]["success"], true);

    agent.store(1, vec![sample_aged(3_600 + 600)]).await;

    let told = scrape(&site.service, &site.owner).await;
    assert_eq!(told.value("signalbox_server_up", &[]), "1");
    assert_eq!(told.value("signalbox_cpu_usage_ratio", &[]), "0.125");
}

#[actix_web::test]
async fn nasty_names_stay_what_they_are() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let name = r#"we"b\n{1}, "#.to_owned() + "ü😀\\";
    let (_, key) = service.server_with_key(&account, &name).await;
    let mut agent = FakeAgent::online(service.address, &key).await;
    let nasty = "a\"b\\c\nd\\n}\r\t # HELP x\n\n\u{85}\\\"";
    let disk = DiskUsage { path: nasty.to_owned(), total: 3, used: 2, free: 1, percent: 66.67 };
    let link = NetworkUsage { interface: String::new(), bytes_sent: 1, bytes_recv: 2, in_total: None };
    agent.store(1, vec![Sample { disk_usage: vec![disk], network: vec![link], ..sample_aged(1) }]).await;

    let told = scrape(&service, &account).await;

    // Control characters are removed on input; everything else is escaped.
    let labels = [("instance", name.as_str()), ("mountpoint", "a\"b\\cd\\n} # HELP x\\\"")];
    assert_eq!(told.value("node_filesystem_size_bytes", &labels), "3");
    assert_eq!(told.value("node_network_receive_bytes_total", &[("device", "")]), "2");
}

#[actix_web::test]
async fn two_servers_of_one_name_are_told_apart_by_their_ids() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let ids = [service.server(&account, "web").await, service.server(&account, "web").await];

    let told = scrape(&service, &account).await;

    assert_eq!(told.values("signalbox_server_up", &[("instance", "web")]), ["0", "0"]);
    let expected = ids.map(label);
    assert_eq!(told.values_of_label("server_id"), expected.iter().map(String::as_str).collect());
}

#[actix_web::test]
async fn without_a_token_nothing_is_exposed() {
    let site = Site::start().await;

    for path in ["/metrics/prometheus".to_owned(), format!("/metrics/{}/prometheus", site.server_id)] {
        site.service.client.get(&path).expect_error(401, "not_authenticated").await;
        site.service.client.get(&path).bearer(&site.key).expect_error(401, "token_invalid").await;
    }
}

#[actix_web::test]
async fn another_users_servers_do_not_exist() {
    let site = Site::start().await;
    let bob = site.service.register("bob").await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(1)]).await;

    assert_eq!(scrape(&site.service, &bob).await.series, []);

    let bobs_id = site.service.server(&bob, "bobs").await;
    assert_eq!(scrape(&site.service, &bob).await.values_of_label("server_id"), [&*label(bobs_id)].into());
    assert_eq!(scrape(&site.service, &site.owner).await.values_of_label("instance"), ["web-1"].into());
    for id in [site.server_id, Uuid::now_v7()] {
        let call = site.service.client.get(format!("/metrics/{id}/prometheus")).bearer(&bob.token);
        call.expect_error(404, "not_found").await;
    }
}

#[actix_web::test]
async fn an_id_that_is_none_is_a_fault_of_the_path() {
    let site = Site::start().await;

    let call = site.service.client.get("/metrics/web-1/prometheus").bearer(&site.owner.token);

    call.expect_faults(422, &[("path", "server_id", "type_error.uuid")]).await;
}

#[actix_web::test]
async fn a_deleted_server_is_no_longer_exposed() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(1)]).await;

    site.delete_server().await;

    assert_eq!(scrape(&site.service, &site.owner).await.series, []);
}

#[actix_web::test]
async fn a_fleet_of_any_size_is_exposed_completely() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let mut ids = BTreeSet::new();
    for position in 0..MANY {
        let new = NewServer {
            owner_id: account.id,
            name: format!("web-{position}"),
            host: "192.0.2.10".to_owned(),
            port: 22,
            description: String::new(),
            tags: Vec::new(),
        };
        ids.insert(label(service.state.store.create_server(new, Actor::command_line()).await.unwrap().record.id));
    }

    let told = scrape(&service, &account).await;

    assert_eq!(told.series.len(), MANY);
    assert_eq!(told.values_of_label("server_id"), ids.iter().map(String::as_str).collect());
}

#[actix_web::test]
async fn servers_that_are_away_cost_no_look_into_the_history() {
    let mut site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(60)]).await;
    drop(agent);
    site.until_status("offline").await;
    // After a restart nothing is remembered of it.
    site = site.restart().await;
    let url = direct(&site.service.state.config.database_url());
    let database = Database::connect(url).await.unwrap();
    for table in ["history_blocks", "history_pieces"] {
        database.execute_unprepared(&format!("ALTER TABLE {table} RENAME TO {table}_away")).await.unwrap();
    }

    let told = scrape(&site.service, &site.owner).await;

    for table in ["history_blocks", "history_pieces"] {
        database.execute_unprepared(&format!("ALTER TABLE {table}_away RENAME TO {table}")).await.unwrap();
    }
    let id = label(site.server_id);
    let labels = [("server_id", id.as_str())];
    assert_eq!(told.value("signalbox_server_up", &labels), "0");
    let last_seen = text_of(&site.server().await["last_seen_at"]);
    let last_seen = Timestamp::parse(&last_seen).unwrap().as_millis() as f64 / 1000.0;
    assert_eq!(told.value("signalbox_server_last_sample_timestamp_seconds", &labels), last_seen.to_string());
}

//! `GET /metrics/fleet`: the recent course of all servers. The values are those of `/metrics/{server_id}/series`.

use serde_json::{Value, json};
use signalbox_protocol::sample::NetworkUsage;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::site::Site;
use crate::support::{Account, Answer, TestService, keys_of, uuid_of};

async fn ask(service: &TestService, account: &Account, query: &str) -> Answer {
    service.client.get(format!("/metrics/fleet?{query}")).bearer(&account.token).expect_answer(200).await
}

async fn fleet(site: &Site, query: &str) -> Vec<Value> {
    ask(&site.service, &site.owner, query).await.json().as_array().unwrap().clone()
}

fn ids(servers: &[Value]) -> Vec<Uuid> {
    servers.iter().map(|server| uuid_of(&server["server_id"])).collect()
}

/// Samples every 10 s from `start` on, which no other server sends.
fn samples(start: Timestamp, count: i64, own: f64) -> Vec<Sample> {
    let sample = |index: i64| Sample {
        cpu_percent: own + (index % 7) as f64,
        network: vec![NetworkUsage {
            interface: "eth0".to_owned(),
            bytes_sent: 0,
            bytes_recv: 1_000 * index as u64,
            in_total: None,
        }],
        ..sample_at(start.plus_millis(10_000 * index))
    };
    (0..count).map(sample).collect()
}

#[actix_web::test]
async fn each_server_has_the_columns_of_its_series() {
    let site = Site::start().await;
    let start = Timestamp::now().plus_millis(-3_600_000);
    let mut all = vec![(site.server_id, site.key.clone())];
    for number in 2..=6 {
        all.push(site.service.server_with_key(&site.owner, &format!("web-{number}")).await);
    }
    for (number, (_, key)) in all.iter().enumerate() {
        // The last one has never reported.
        if number < 5 {
            let mut agent = FakeAgent::online(site.service.address, key).await;
            agent.store(1, samples(start, 30 + 60 * number as i64, 10.0 * number as f64)).await;
        }
    }
    let range = format!("start={start}&end={}", start.plus_millis(3_600_000));

    for chosen in [
        "names=cpu_percent,network_in:eth0&max_points=60",
        "names=memory_percent&max_points=500",
        "names=&max_points=60",
    ] {
        // A seal between two reads can make the points finer: then both are read again.
        let (shown, series) = loop {
            let shown = fleet(&site, &format!("{range}&{chosen}")).await;
            let mut series = Vec::new();
            for (id, _) in &all {
                series.push(site.read(&format!("/metrics/{id}/series?{range}&{chosen}")).await);
            }
            if fleet(&site, &format!("{range}&{chosen}")).await == shown {
                break (shown, series);
            }
        };

        assert_eq!(ids(&shown), all.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        for (mut server, series) in shown.into_iter().zip(series) {
            server.as_object_mut().unwrap().remove("server_id");
            assert_eq!(server, series, "{chosen}");
        }
    }
}

#[actix_web::test]
async fn the_last_hour_of_cpu_and_memory_is_shown_by_default() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, samples(Timestamp::now().plus_millis(-7_200_000), 719, 1.0)).await;

    let shown = fleet(&site, "").await;

    assert_eq!(keys_of(&shown[0]), ["resolution_seconds", "series", "server_id", "timestamps"]);
    assert_eq!(keys_of(&shown[0]["series"]), ["cpu_percent", "memory_percent"]);
    let times: Vec<i64> =
        shown[0]["timestamps"].as_array().unwrap().iter().map(|time| time.as_i64().unwrap()).collect();
    // Minutes or two: an hour that does not begin with a minute has parts of 61.
    assert!((29..=60).contains(&times.len()), "{} points", times.len());
    // The first part is shown whole.
    assert!(times.iter().all(|time| *time >= Timestamp::now().as_seconds() - 3_600 - 300), "{times:?}");
}

#[actix_web::test]
async fn servers_can_be_chosen_by_their_ids() {
    let site = Site::start().await;
    let (second, _) = site.service.server_with_key(&site.owner, "web-2").await;
    let stranger = site.service.register("stranger").await;
    let (theirs, _) = site.service.server_with_key(&stranger, "db-1").await;

    let shown = fleet(&site, &format!("ids={second},{theirs}")).await;

    assert_eq!(ids(&shown), [second]);
    let refused = site.service.client.get("/metrics/fleet?ids=web-2").bearer(&site.owner.token);
    assert_eq!(refused.expect(422).await["detail"][0]["loc"], json!(["query", "ids"]));
}

#[actix_web::test]
async fn servers_are_chosen_as_in_the_list() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    for (name, tags) in [("web-2", ["web"]), ("db-1", ["db"]), ("web-1", ["web"])] {
        let body = json!({"name": name, "host": "192.0.2.10", "tags": tags});
        service.client.post("/servers").bearer(&account.token).json(body).expect(201).await;
    }

    for query in ["", "tag=web", "q=DB", "status=online", "status=pending", "limit=1", "limit=1&offset=2", "offset=9"] {
        let listed = service.client.get(format!("/servers?{query}")).bearer(&account.token).expect_answer(200).await;
        let shown = ask(&service, &account, query).await;

        let expected: Vec<Uuid> =
            listed.json().as_array().unwrap().iter().map(|server| uuid_of(&server["id"])).collect();
        assert_eq!(ids(shown.json().as_array().unwrap()), expected, "{query}");
        assert_eq!(shown.header("X-Total-Count"), listed.header("X-Total-Count"), "{query}");
    }
}

#[actix_web::test]
async fn everybody_sees_their_own() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let theirs = site.service.server(&stranger, "web-1").await;

    let shown = ask(&site.service, &stranger, "").await.json();

    assert_eq!(ids(shown.as_array().unwrap()), [theirs]);
    assert_eq!(ids(&fleet(&site, "").await), [site.server_id]);
}

#[actix_web::test]
async fn all_faults_come_in_one_answer() {
    let site = Site::start().await;
    let get = |query: &str| site.service.client.get(format!("/metrics/fleet?{query}")).bearer(&site.owner.token);
    let nine = "a,b,c,d,e,f,g,h,i";

    get("start=x&max_points=501&limit=0&status=dead")
        .expect_faults(
            422,
            &[
                ("query", "start", "value_error.datetime"),
                ("query", "max_points", "value_error.number.not_le"),
                ("query", "limit", "value_error.number.not_ge"),
                ("query", "status", "*"),
            ],
        )
        .await;
    get(&format!("start=2026-11-20T10:00:00Z&end=2026-11-20T09:00:00Z&names={nine}"))
        .expect_faults(422, &[("query", "end", "value_error.range"), ("query", "names", "value_error.list.max_items")])
        .await;
    get(&format!("names={}", &nine[..15])).expect(200).await;
    // In parameters of their own, names with commas count once each.
    let several =
        |count: usize| (0..count).map(|mount| format!("&names=disk_used:/{mount},b{mount}")).collect::<String>();
    get(&several(8)).expect(200).await;
    get(&several(9)).expect_faults(422, &[("query", "names", "value_error.list.max_items")]).await;
    for (query, is_too_much) in [
        (format!("limit=500&max_points=60&names={}", &nine[..15]), false),
        (format!("limit=500&max_points=63&names={}", &nine[..15]), true),
        ("limit=500&max_points=250".to_owned(), false),
        ("limit=500&max_points=251".to_owned(), true),
    ] {
        if is_too_much {
            get(&query).expect_faults(422, &[("query", "max_points", "value_error.number.not_le")]).await;
        } else {
            get(&query).expect(200).await;
        }
    }
}

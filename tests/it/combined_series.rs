//! `GET /metrics/fleet/series` and `/names`: series of many servers as the lines of one chart.

use serde_json::{Value, json};
use signalbox_protocol::sample::DiskUsage;
use signalbox_protocol::{Sample, Timestamp};

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::site::Site;
use crate::support::{Answer, keys_of, text_of, uuid_of};

/// Samples of ten minutes, every 10 s, with this use of CPU.
fn samples(start: Timestamp, cpu: f64) -> Vec<Sample> {
    let disk = |path: &str, used: u64| DiskUsage { path: path.to_owned(), total: 1_000, used, ..DiskUsage::default() };
    let sample = |index: i64| Sample {
        cpu_percent: cpu,
        disk_usage: vec![disk("/", 100), disk("/srv", 300)],
        ..sample_at(start.plus_millis(10_000 * index))
    };
    (0..60).map(sample).collect()
}

/// Two servers with the tag `web` and one without tags, which use 10, 20 and 60 percent. Returns the range of their samples.
async fn fleet() -> (Site, String) {
    let site = Site::start().await;
    let start = Timestamp::from_millis((Timestamp::now().as_millis() / 3_600_000 - 1) * 3_600_000);
    let mut all = vec![(site.server_id, site.key.clone())];
    for name in ["web-2", "web-3"] {
        all.push(site.service.server_with_key(&site.owner, name).await);
    }
    for ((id, key), (cpu, tags)) in all.iter().zip([(60.0, vec![]), (10.0, vec!["web"]), (20.0, vec!["web"])]) {
        let body = json!({"tags": tags});
        let path = format!("/servers/{id}");
        site.service.client.put(path).bearer(&site.owner.token).json(body).expect(200).await;
        let mut agent = FakeAgent::online(site.service.address, key).await;
        agent.store(1, samples(start, cpu)).await;
    }
    (site, format!("start={start}&end={}", start.plus_millis(599_000)))
}

async fn ask(site: &Site, query: &str) -> Answer {
    let path = format!("/metrics/fleet/series?{query}");
    site.service.client.get(path).bearer(&site.owner.token).expect_answer(200).await
}

/// The first mean of each line, with the number of its servers.
fn firsts(answer: &Value) -> Vec<(f64, u64)> {
    let lines = answer["lines"].as_array().unwrap();
    lines.iter().map(|line| (line["avg"][0].as_f64().unwrap(), line["servers"][0].as_u64().unwrap())).collect()
}

#[actix_web::test]
async fn servers_are_lines_tags_are_lines_and_all_are_one_line() {
    let (site, range) = fleet().await;

    let by_server = ask(&site, &format!("{range}&max_points=10")).await.json();
    assert_eq!(keys_of(&by_server), ["left_out", "lines", "resolution_seconds", "server_count", "timestamps"]);
    assert_eq!((&by_server["resolution_seconds"], &by_server["server_count"]), (&json!(60), &json!(3)));
    assert_eq!(by_server["timestamps"].as_array().unwrap().len(), 10);
    assert_eq!(firsts(&by_server), [(60.0, 1), (20.0, 1), (10.0, 1)]);
    assert_eq!(uuid_of(&by_server["lines"][0]["server_id"]), site.server_id);
    assert_eq!(by_server["lines"][1]["server_name"], "web-3");

    let by_tag = ask(&site, &format!("{range}&by=tag&function=sum")).await.json();
    assert_eq!(firsts(&by_tag), [(60.0, 1), (30.0, 2)]);
    assert_eq!((&by_tag["lines"][0]["tag"], &by_tag["lines"][1]["tag"]), (&Value::Null, &json!("web")));

    for (function, expected) in [("avg", 30.0), ("sum", 90.0), ("min", 10.0), ("max", 60.0)] {
        let all = ask(&site, &format!("{range}&by=none&function={function}")).await.json();
        assert_eq!(firsts(&all), [(expected, 3)], "{function}");
    }
}

#[actix_web::test]
async fn a_star_stands_for_every_target_and_top_for_the_highest() {
    let (site, range) = fleet().await;

    let each = ask(&site, &format!("{range}&names=disk_used:*&by=series&top=3&tag=web")).await.json();
    assert_eq!(firsts(&each), [(300.0, 1), (300.0, 1), (100.0, 1)]);
    assert_eq!((&each["lines"][0]["series"], &each["left_out"]), (&json!("disk_used:/srv"), &json!(1)));
    let summed = ask(&site, &format!("{range}&names=disk_used:*&by=none&function=sum")).await.json();
    assert_eq!(firsts(&summed), [(1_200.0, 3)]);
}

#[actix_web::test]
async fn servers_are_chosen_by_id_tag_and_text() {
    let (site, range) = fleet().await;
    let stranger = site.service.register("stranger").await;
    let theirs = site.service.server(&stranger, "theirs").await;
    let count = async |query: &str| ask(&site, &format!("{range}&{query}")).await.json()["server_count"].clone();

    assert_eq!(count("tag=web").await, json!(2));
    assert_eq!(count("q=web-2").await, json!(1));
    assert_eq!(count(&format!("server={}", site.server_id)).await, json!(1));
    // Servers of others look like servers that do not exist.
    assert_eq!(count(&format!("server={theirs},{}", site.server_id)).await, json!(1));
    assert_eq!(count(&format!("server={theirs}")).await, json!(0));
    assert_eq!(count(&format!("server={}&tag=web", site.server_id)).await, json!(0));
    assert_eq!(count("tag=nobody").await, json!(0));
}

#[actix_web::test]
async fn a_gap_stays_a_gap() {
    let (site, range) = fleet().await;
    let start = range.split(['=', '&']).nth(1).unwrap();
    let end = Timestamp::parse(start).unwrap().plus_millis(1_199_000);

    let all = ask(&site, &format!("start={start}&end={end}&by=none&max_points=20")).await.json();

    let line = &all["lines"][0];
    assert_eq!((&line["avg"][9], &line["servers"][9]), (&json!(30.0), &json!(3)));
    assert_eq!((&line["avg"][10], &line["servers"][10]), (&Value::Null, &json!(0)));
    assert_eq!(line["avg"].as_array().unwrap().len(), 20);
}

#[actix_web::test]
async fn the_lines_are_a_table_for_other_programs() {
    let (site, range) = fleet().await;
    let path = format!("/metrics/fleet/series?{range}&by=tag&max_points=10");

    let call = site.service.client.get(path).bearer(&site.owner.token).header("Accept", "text/csv");
    let answer = call.expect_answer(200).await;

    assert_eq!(answer.header("Content-Type"), "text/csv; charset=utf-8");
    let text = &answer.text;
    let lines: Vec<&str> = text.split("\r\n").collect();
    let head = "timestamp,cpu_percent avg,cpu_percent min,cpu_percent max,cpu_percent servers,cpu_percent web avg,\
                cpu_percent web min,cpu_percent web max,cpu_percent web servers";
    assert_eq!((lines[0], lines.len()), (head, 12));
    assert!(lines[1].ends_with("Z,60,60,60,1,15,10,20,2"), "{}", lines[1]);
}

#[actix_web::test]
async fn the_names_of_all_servers_are_listed_once() {
    let (site, _) = fleet().await;
    let names = async |query: &str| {
        let listed = site.read(&format!("/metrics/fleet/names?{query}")).await;
        let names = listed["names"].as_array().unwrap().iter().map(|one| text_of(&one["name"])).collect::<Vec<_>>();
        (names, listed["truncated"].as_bool().unwrap())
    };

    assert_eq!(names("q=DISK_USED").await, (vec!["disk_used:/".to_owned(), "disk_used:/srv".to_owned()], false));
    assert!(names("limit=1").await.1);
    assert_eq!(names("tag=nobody").await, (Vec::new(), false));
}

#[actix_web::test]
async fn a_guest_gets_the_names_of_the_servers_that_they_see() {
    let (site, _) = fleet().await;
    let guest = site.service.register("guest").await;
    let (silent, _) = site.service.server_with_key(&site.owner, "silent").await;
    let grant = async |scope: Value| {
        let body = json!({"subject": {"user_id": guest.id}, "scope": scope, "role": "viewer"});
        site.post("/grants").json(body).expect(201).await;
    };
    let names = async || {
        let call = site.service.client.get("/metrics/fleet/names?q=disk_used").bearer(&guest.token);
        call.expect(200).await["names"].as_array().unwrap().len()
    };

    grant(json!({"server_id": silent})).await;
    assert_eq!(names().await, 0);
    grant(json!({"tag": "web"})).await;
    assert_eq!(names().await, 2);
}

#[actix_web::test]
async fn all_faults_come_in_one_answer() {
    let site = Site::start().await;
    let get = |query: &str| site.service.client.get(format!("/metrics/fleet/series?{query}")).bearer(&site.owner.token);

    get("start=x&max_points=501&top=0&by=rack&function=median&rank=first&server=1")
        .expect_faults(
            422,
            &[
                ("query", "start", "value_error.datetime"),
                ("query", "max_points", "value_error.number.not_le"),
                ("query", "top", "value_error.number.not_ge"),
                ("query", "by", "type_error.enum"),
                ("query", "function", "type_error.enum"),
                ("query", "rank", "type_error.enum"),
                ("query", "server", "type_error.uuid"),
            ],
        )
        .await;
    get("start=2026-11-20T10:00:00Z&end=2026-11-20T09:00:00Z&names=a,b,c,d,e,f,g,h,i")
        .expect_faults(422, &[("query", "end", "value_error.range"), ("query", "names", "value_error.list.max_items")])
        .await;
    site.service.client.get("/metrics/fleet/series").expect(401).await;
}

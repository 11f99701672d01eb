//! `/servers/availability`: the last hours of many servers, as bars.

use serde_json::{Value, json};
use signalbox::store::{NewServerEvent, Store, Visibility};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::site::Site;
use crate::support::{Account, Answer, eventually, keys_of, text_of, uuid_of};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

impl Site {
    async fn bars_as(&self, account: &Account, query: &str) -> Answer {
        let path = format!("/servers/availability?{query}");
        self.service.client.get(path).bearer(&account.token).expect_answer(200).await
    }

    async fn bars(&self, query: &str) -> Vec<Value> {
        self.bars_as(&self.owner, query).await.json().as_array().unwrap().clone()
    }

    fn store(&self) -> &Store {
        &self.service.state.store
    }

    async fn turn(&self, server_id: Uuid, kind: &str, at: Timestamp) {
        let event = NewServerEvent::new(server_id, kind, at, json!({ "reason": "silent" }));
        self.store().record_events(&[event]).await.unwrap();
    }
}

fn beats(bar: &Value) -> Vec<String> {
    bar["beats"].as_array().unwrap().iter().map(text_of).collect()
}

/// The start of the part that contains the present.
fn last_part() -> Timestamp {
    let now_ms = Timestamp::now().as_millis();
    Timestamp::from_millis(now_ms - now_ms.rem_euclid(30 * MINUTE_MS))
}

#[actix_web::test]
async fn each_server_has_48_parts_with_what_happened_in_them() {
    let (site, last, bars) = loop {
        let (site, last) = (Site::start().await, last_part());
        site.turn(site.server_id, "online", last.plus_millis(-60 * HOUR_MS)).await;
        site.turn(site.server_id, "offline", last.plus_millis(-2 * HOUR_MS + 5 * MINUTE_MS)).await;
        site.turn(site.server_id, "online", last.plus_millis(-HOUR_MS)).await;
        site.turn(site.server_id, "container", last.plus_millis(-MINUTE_MS)).await;

        let bars = site.bars("").await;

        // Otherwise all of it is one part earlier by now.
        if last == last_part() {
            break (site, last, bars);
        }
    };
    let [bar] = bars.as_slice() else { panic!("not one bar: {bars:?}") };
    assert_eq!(
        keys_of(bar),
        ["beat_seconds", "beats", "outage_count", "outages", "server_id", "start", "uptime_percent"]
    );
    assert_eq!(uuid_of(&bar["server_id"]), site.server_id);
    assert_eq!(bar["beat_seconds"], 1_800);
    assert_eq!(text_of(&bar["start"]), last.plus_millis(-47 * 30 * MINUTE_MS).to_string());
    let parts = beats(bar);
    assert_eq!(parts.len(), 48);
    assert_eq!(parts[43..], ["partly", "offline", "online", "online", "online"]);
    assert!(parts[..43].iter().all(|beat| beat == "online"), "{parts:?}");
    assert_eq!(bar["outage_count"], 1);
    let outage = json!({
        "start": last.plus_millis(-2 * HOUR_MS + 5 * MINUTE_MS).to_string(),
        "end": last.plus_millis(-HOUR_MS).to_string(),
        "reason": "silent",
        "ongoing": false,
    });
    assert_eq!(bar["outages"], json!([outage]));
}

#[actix_web::test]
async fn a_server_without_events_is_unknown_and_one_that_is_away_is_offline_until_now() {
    let site = Site::start().await;
    let (gone, _) = site.service.server_with_key(&site.owner, "web-2").await;
    site.turn(gone, "offline", last_part().plus_millis(-90 * HOUR_MS)).await;

    let bars = site.bars("hours=1").await;

    assert_eq!(beats(&bars[0]), vec!["unknown"; 48]);
    assert_eq!(bars[0]["uptime_percent"], Value::Null);
    assert_eq!(beats(&bars[1]), vec!["offline"; 48]);
    assert_eq!((&bars[1]["beat_seconds"], &bars[1]["uptime_percent"]), (&json!(75), &json!(0.0)));
    assert_eq!(bars[1]["outages"][0]["ongoing"], true);
}

#[actix_web::test]
async fn an_agent_that_connects_is_in_the_bar_at_once() {
    let site = Site::start().await;
    let _agent = site.agent().await;

    eventually("the last part is online", async || {
        let bars = site.bars(&format!("ids={}", site.server_id)).await;
        beats(&bars[0]).last().is_some_and(|beat| beat == "online").then_some(())
    })
    .await;
}

#[actix_web::test]
async fn bars_are_of_ones_own_servers_alone_by_page_or_by_id() {
    let site = Site::start().await;
    let (second, _) = site.service.server_with_key(&site.owner, "web-2").await;
    let stranger = site.service.register("stranger").await;
    let (theirs, _) = site.service.server_with_key(&stranger, "db-1").await;
    let ids = |answer: &Answer| -> Vec<Uuid> {
        answer.json().as_array().unwrap().iter().map(|bar| uuid_of(&bar["server_id"])).collect()
    };

    let all = site.bars_as(&site.owner, "").await;
    let page = site.bars_as(&site.owner, "limit=1&offset=1").await;
    let chosen = site.bars_as(&site.owner, &format!("ids={theirs},{second}")).await;

    assert_eq!((ids(&all), all.header("x-total-count")), (vec![site.server_id, second], "2"));
    assert_eq!((ids(&page), page.header("x-total-count")), (vec![second], "2"));
    assert_eq!((ids(&chosen), chosen.header("x-total-count")), (vec![second], "1"));
    assert_eq!(ids(&site.bars_as(&stranger, &format!("ids={second}")).await), Vec::<Uuid>::new());
}

#[actix_web::test]
async fn the_store_reads_no_events_of_a_server_of_somebody_else() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let (theirs, _) = site.service.server_with_key(&stranger, "db-1").await;
    site.turn(theirs, "online", Timestamp::from_millis(1_000)).await;
    site.turn(site.server_id, "online", Timestamp::from_millis(1_000)).await;
    let (start, end) = (Timestamp::from_millis(2_000), Timestamp::from_millis(9_000));

    let found = site
        .store()
        .presence_of_servers(&Visibility::of_owner(site.owner.id), &[theirs, site.server_id], start, end)
        .await
        .unwrap();

    assert_eq!(found.into_keys().collect::<Vec<_>>(), [site.server_id]);
}

#[actix_web::test]
async fn of_a_server_that_comes_and_goes_all_day_the_newest_are_read() {
    let bars = loop {
        let (site, last) = (Site::start().await, last_part());
        let event = |index: i64| {
            let kind = if index % 2 == 0 { "online" } else { "offline" };
            NewServerEvent::new(site.server_id, kind, last.plus_millis(-index * 60_000), json!({}))
        };
        let events: Vec<NewServerEvent> = (1..=1_300).map(event).collect();
        site.store().record_events(&events).await.unwrap();
        site.turn(site.server_id, "online", last.plus_millis(-60 * HOUR_MS)).await;

        let bars = site.bars("").await;

        // Otherwise all of it is one part earlier by now.
        if last == last_part() {
            break bars;
        }
    };
    let parts = beats(&bars[0]);
    assert_eq!(parts[40..47], ["partly"; 7]);
    // 1,000 minutes reach 33 parts back.
    assert_eq!(parts[..13], ["unknown"; 13]);
    assert_eq!(bars[0]["outages"].as_array().map(Vec::len), Some(20));
}

#[actix_web::test]
async fn bars_are_for_those_who_are_signed_in_and_queries_are_checked() {
    let site = Site::start().await;
    let client = &site.service.client;

    client.get("/servers/availability").expect_answer(401).await;
    let many = vec![site.server_id.to_string(); 101].join(",");
    for (query, field) in [
        ("hours=0".to_owned(), "hours"),
        ("hours=169".to_owned(), "hours"),
        ("limit=501".to_owned(), "limit"),
        ("ids=web-1".to_owned(), "ids"),
        ("ids=".to_owned(), "ids"),
        (format!("ids={many}"), "ids"),
    ] {
        let answer = client.get(format!("/servers/availability?{query}")).bearer(&site.owner.token);
        let fault = answer.expect(422).await;
        assert_eq!(fault["detail"][0]["loc"], json!(["query", field]), "{query}");
    }
}

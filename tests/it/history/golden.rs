//! A data directory of commit c0502cd, whose service was killed: see tests/fixtures/README.md. Every version opens it, and
//! returns what was acknowledged, with the same answers as that service.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use signalbox::config::{Config, Retention};
use signalbox_history::metric;
use signalbox_history::shape::Schema;
use signalbox_protocol::{Encoding, Sample, Timestamp};
use uuid::Uuid;

use super::reference::Model;
use super::scene::{HOUR, MINUTE, SECOND, Scene, every, rich, rows, still};
use crate::support::agent::FakeAgent;
use crate::support::fixtures::{bytes, json};
use crate::support::site::Site;
use crate::support::{Account, Storage, TestService, write_private};

/// The least usual distance of its samples.
const STEP: i64 = 30 * SECOND;

/// A hundred years: data with fixed times is never too old.
const FOR_EVER: u32 = 36_500;

/// The files other than the database.
const SECRETS: [&str; 2] = ["encryption-key", "jwt-secret"];

/// What is known about the directory.
#[derive(Deserialize)]
struct Written {
    email: String,
    username: String,
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    id: Uuid,
    key: String,
    /// The times with samples, in whole hours: their beginnings and ends.
    stretches: Vec<(Timestamp, Timestamp)>,
}

impl Server {
    fn ranges(&self) -> impl Iterator<Item = (i64, i64)> {
        self.stretches.iter().map(|(begin, end)| (begin.as_millis(), end.as_millis() - 1))
    }
}

/// A query, and the answer of the service at that time.
#[derive(Deserialize)]
struct Asked {
    path: String,
    answer: Value,
}

struct Golden {
    servers: Vec<Server>,
    asked: Vec<Asked>,
    /// By server.
    models: BTreeMap<Uuid, Model>,
}

fn keeping(config: &mut Config) {
    still(config);
    // The directory has an embedded database, whatever the other tests are on.
    config.database_url = None;
    config.retention =
        Retention { raw_days: FOR_EVER, minute_days: FOR_EVER, quarter_days: FOR_EVER, hour_days: FOR_EVER };
    config.alert_days = FOR_EVER;
    config.command_days = FOR_EVER;
    config.event_days = FOR_EVER;
}

fn put_in_place(data_dir: &Path) {
    std::fs::write(data_dir.join("signalbox.db"), bytes("c0502cd/signalbox.db.gz")).unwrap();
    for secret in SECRETS {
        write_private(&data_dir.join(secret), str::from_utf8(&bytes(&format!("c0502cd/{secret}"))).unwrap());
    }
}

/// The service on a copy of the directory, with its user signed in.
async fn opened(written: &Written) -> (TestService, Account) {
    let storage = Storage::fresh().await;
    put_in_place(storage.path());
    let service = TestService::start_on(storage, keeping).await;
    let account = Account {
        id: Uuid::nil(),
        username: written.username.clone(),
        email: written.email.clone(),
        token: String::new(),
        refresh_token: String::new(),
    };
    let owner = service.sign_in(&account).await;
    (service, owner)
}

/// Whether that service knew a series of this name.
fn knew(name: &str) -> bool {
    let base = name.split(':').next().unwrap_or_default();
    let schema = Schema::version_1();
    let listed = schema.lists.iter().flat_map(|(_, fields)| fields);
    let mut fields = schema.machine.iter().chain(&schema.core).chain(listed);
    metric::find_series(base).is_some_and(|metric| fields.any(|field| *field == metric.field))
}

/// Fields that depend on the present, not on stored data.
const OF_THE_PRESENT: [&str; 3] = ["active", "active_until", "silenced"];

/// How exactly a number is the one that was answered.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Same,
    /// Means: sealed ones are stored as integers, all others calculated from the samples; and late samples may or may not be in
    /// the minutes that they are calculated from.
    RoundedElsewhere,
}

/// Values with a fraction: their means are stored to a hundredth, those of temperatures to a tenth. All others are whole
/// numbers.
const WITH_FRACTION: [&str; 5] = ["cpu", "percent", "load", "temperature", "celsius"];

/// `what` ends with the name of the number.
fn is_same(what: &str, found: &Value, expected: &Value, numbers: Numbers) -> bool {
    if numbers == Numbers::Same {
        return found == expected;
    }
    let name = what.rsplit("Z.").next().unwrap_or_default();
    let has_fraction = WITH_FRACTION.iter().any(|part| name.contains(part));
    match (found.as_u64(), expected.as_u64(), found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected), ..) if !has_fraction => found.abs_diff(expected) <= 1,
        // Sums of numbers near 2⁵³ are inexact themselves.
        (.., Some(found), Some(expected)) => {
            (found - expected).abs() <= if has_fraction { 0.101 } else { 1.0_f64.max(expected.abs() * 1e-15) }
        }
        _ => found == expected,
    }
}

/// Asserts that an answer contains everything that it did, in the same places.
#[track_caller]
fn assert_holds(what: &str, found: &Value, expected: &Value, numbers: Numbers) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (key, expected) in expected.iter().filter(|(key, _)| !OF_THE_PRESENT.contains(&key.as_str())) {
                let found = found.get(key).unwrap_or_else(|| panic!("{what} has no {key}"));
                assert_holds(&format!("{what}.{key}"), found, expected, numbers);
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{what}");
            for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_holds(&format!("{what}[{place}]"), found, expected, numbers);
            }
        }
        _ => assert!(is_same(what, found, expected, numbers), "{what}: {found}, not {expected}"),
    }
}

impl Golden {
    /// The opened directory, with an agent of its first server, and its expected contents.
    async fn open() -> (Scene, Self) {
        let written: Written = json("c0502cd/written.json");
        let (service, owner) = opened(&written).await;
        let Written { servers, .. } = written;
        let mut models = BTreeMap::new();
        for line in String::from_utf8(bytes("c0502cd/acknowledged.jsonl.gz")).unwrap().lines() {
            let (server_id, sample): (Uuid, Sample) = serde_json::from_str(line).unwrap();
            models.entry(server_id).or_insert_with(|| Model::of_earlier(STEP, knew)).add(&sample);
        }
        let site = Site { service, owner, server_id: servers[0].id, key: servers[0].key.clone() };
        let model = models[&site.server_id].clone();
        let agent = FakeAgent::online_in(site.service.address, &site.key, Encoding::MessagePack).await;
        let asked = json("c0502cd/answers.json.gz");
        (Scene::of(site, model, agent), Self { servers, asked, models })
    }

    /// Asserts that every answer is as it was.
    async fn assert_answered(&self, when: &str, scene: &mut Scene, of_means: Numbers) {
        let first = scene.site.server_id;
        let model = scene.model.clone();
        for server in &self.servers {
            scene.site.server_id = server.id;
            scene.model = self.models[&server.id].clone();
            for range in server.ranges() {
                scene.assert_raw(when, range).await;
                if server.id == first {
                    scene.assert_as_modelled(when, range).await;
                }
            }
            self.assert_processes(when, scene).await;
        }
        (scene.site.server_id, scene.model) = (first, model);
        let mut count = 0;
        for Asked { path, answer } in self.asked.iter().filter(|asked| asked.path.starts_with("/metrics/")) {
            let numbers = if path.contains("resolution=raw") { Numbers::Same } else { of_means };
            let mut found = scene.site.read(path).await;
            if let Some(names) = found.get_mut("names").and_then(Value::as_array_mut) {
                names.retain(|one| knew(one["name"].as_str().unwrap()));
            }
            assert_holds(&format!("{when}: {path}"), &found, answer, numbers);
            count += 1;
        }
        assert!(count > 20, "{count} questions");
    }

    /// Asserts that some of the lists of top processes are found.
    async fn assert_processes(&self, when: &str, scene: &Scene) {
        let listed =
            scene.model.samples.values().filter_map(|sample| Some((sample.timestamp, sample.processes.as_ref()?)));
        let mut count = 0;
        for (at, processes) in listed.step_by(7) {
            let mut expected = serde_json::to_value(processes).unwrap();
            expected["timestamp"] = at.to_string().into();
            let path = format!("/metrics/{}/processes?at={at}", scene.site.server_id);
            assert_eq!(scene.site.read(&path).await, expected, "{when}: {at}");
            count += 1;
        }
        assert!(count > 5, "{count} lists");
    }
}

async fn count(scene: &Scene, table: &str) -> i64 {
    rows(&scene.site.service, table, "TRUE").await
}

#[actix_web::test]
async fn what_an_earlier_service_acknowledged_is_answered_as_before() {
    let (mut scene, golden) = Golden::open().await;
    golden.assert_answered("as it was found", &mut scene, Numbers::Same).await;
    assert!(count(&scene, "history_pieces").await > 1, "hours lie in pieces");

    scene = scene.restart_with(keeping).await;
    golden.assert_answered("started again", &mut scene, Numbers::Same).await;
    scene.settle().await;
    assert_eq!(count(&scene, "history_journal").await, 0, "the journal has become blocks");
    golden.assert_answered("settled", &mut scene, Numbers::RoundedElsewhere).await;
    scene = scene.restart_with(keeping).await;
    scene.settle().await;
    golden.assert_answered("settled and started again", &mut scene, Numbers::RoundedElsewhere).await;
}

#[actix_web::test]
async fn new_samples_are_stored_beside_those_of_an_earlier_service() {
    let (mut scene, golden) = Golden::open().await;
    let ranges: Vec<_> = golden.servers[0].ranges().collect();
    // Between the old ones, before they are sealed with them and after: in days, in hours, in pieces and in the journal.
    let between = |model: &Model, later: i64| -> Vec<Sample> {
        let some = model.samples.iter().step_by(5);
        let moved =
            |(at, sample): (&i64, &Sample)| Sample { timestamp: Timestamp::from_millis(at + later), ..sample.clone() };
        some.map(moved).map(|sample| Sample { processes: None, ..sample }).collect()
    };
    scene.send(between(&scene.model, 7 * SECOND)).await;
    // Some are sent again.
    let again: Vec<Sample> = scene.model.samples.values().step_by(3).cloned().collect();
    scene.send(again).await;
    let hour = Timestamp::now().as_millis() / HOUR * HOUR;
    let fresh = (hour + 2 * HOUR, hour + 3 * HOUR - 1);
    scene.send(every(MINUTE / 2, (fresh.0, fresh.0 + 20 * MINUTE), rich)).await;
    for when in ["beside the journal", "started again", "settled", "settled again"] {
        for range in ranges.iter().copied().chain([fresh]) {
            scene.assert_as_modelled(when, range).await;
        }
        match when {
            "beside the journal" => scene = scene.restart_with(keeping).await,
            "started again" => scene.settle().await,
            _ => {
                scene.send(between(&scene.model, 11 * SECOND)).await;
                scene.settle().await;
            }
        }
    }
}

#[actix_web::test]
async fn what_else_an_earlier_service_stored_is_there_too() {
    let written: Written = json("c0502cd/written.json");
    let (service, owner) = opened(&written).await;
    let asked: Vec<Asked> = json("c0502cd/answers.json.gz");
    let mut count = 0;
    for Asked { path, answer } in asked.iter().filter(|asked| !asked.path.starts_with("/metrics/")) {
        let mut found = service.client.get(path).bearer(&owner.token).expect(200).await;
        if path == "/audit" {
            // The sign-in of this test precedes the earlier ones.
            let list = found.as_array_mut().unwrap();
            list.drain(..list.len() - answer.as_array().unwrap().len());
        }
        assert_holds(path, &found, answer, Numbers::Same);
        count += 1;
    }
    assert!(count > 5, "{count} questions");
}

//! Creating, reading, changing and deleting silences.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::{silence_path, with};
use crate::support::site::Site;
use crate::support::{assert_timestamp, keys_of, text_of, uuid_of};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// This many hours from now.
fn in_hours(hours: i64) -> String {
    Timestamp::now().plus_millis(hours * HOUR_MS).to_string()
}

/// Every day at any time: in this zone no day has 25 hours, of which the last one would be left out.
fn always() -> Value {
    json!({"weekdays": [1, 2, 3, 4, 5, 6, 7], "start": "00:00", "duration_minutes": 1_440, "time_zone": "Asia/Kolkata"})
}

/// The ids of the silences that apply to the server now, by the service's own rule.
async fn is_held(site: &Site) -> bool {
    let silences = site.service.state.store.silences_of(site.owner.id, Timestamp::now()).await.unwrap();
    let tags = ["web".to_owned()];
    signalbox::alerts::silence::held_until(silences.iter(), site.server_id, &tags, Timestamp::now()).is_some()
}

#[actix_web::test]
async fn a_silence_that_applies_once_begins_now_by_default() {
    let site = Site::start().await;
    let ends_at = in_hours(2);
    let before = Timestamp::now().to_string();

    let body = json!({"server_id": site.server_id, "reason": "New disks", "ends_at": ends_at});
    let silence = site.new_silence(body).await;

    let fields = "active active_until all created_at created_by ends_at id reason schedule server_id starts_at tag \
                  updated_at";
    assert_eq!(keys_of(&silence), fields.split_whitespace().collect::<Vec<_>>());
    assert_eq!(uuid_of(&silence["id"]).get_version_num(), 7);
    assert_eq!((&silence["server_id"], &silence["tag"]), (&json!(site.server_id), &Value::Null));
    assert_eq!((&silence["all"], &silence["reason"]), (&json!(false), &json!("New disks")));
    assert_eq!((&silence["schedule"], &silence["created_by"]), (&Value::Null, &json!("owner")));
    assert!(text_of(&silence["starts_at"]) >= before);
    assert_eq!((&silence["ends_at"], &silence["active_until"]), (&json!(ends_at), &json!(ends_at)));
    assert_eq!(silence["active"], true);
    assert_timestamp(&silence["starts_at"]);
    assert_timestamp(&silence["created_at"]);
    assert_timestamp(&silence["updated_at"]);
    assert_eq!(site.read(&silence_path(&silence)).await, silence);
    assert_eq!(site.read("/alerts/silences").await, json!([silence]));
}

#[actix_web::test]
async fn one_that_is_still_to_come_or_over_is_not_active() {
    let site = Site::start().await;

    for (starts_at, ends_at) in [(in_hours(1), in_hours(2)), (in_hours(-2), in_hours(-1))] {
        let silence = site.new_silence(json!({"all": true, "starts_at": starts_at, "ends_at": ends_at})).await;
        assert_eq!((&silence["active"], &silence["active_until"]), (&json!(false), &Value::Null));
        assert_eq!((&silence["starts_at"], &silence["ends_at"]), (&json!(starts_at), &json!(ends_at)));
    }
    assert!(!is_held(&site).await);
}

#[actix_web::test]
async fn a_weekly_one_says_its_days_in_words() {
    let site = Site::start().await;
    let schedule = json!({"weekdays": ["sun", 1, "mon", 6], "start": "22:05", "duration_minutes": 90, "time_zone": "Asia/Kolkata"});

    let silence = site.new_silence(json!({"tag": "web", "schedule": schedule})).await;

    let expected = with(schedule, json!({"weekdays": ["mon", "sat", "sun"]}));
    assert_eq!((&silence["schedule"], &silence["tag"]), (&expected, &json!("web")));
    assert_eq!((&silence["starts_at"], &silence["ends_at"]), (&Value::Null, &Value::Null));
    assert_eq!((&silence["reason"], &silence["all"]), (&json!(""), &json!(false)));
}

#[actix_web::test]
async fn one_that_holds_always_is_active_now() {
    let site = Site::start().await;

    let silence = site.new_silence(json!({"all": true, "schedule": always()})).await;

    assert_eq!((&silence["all"], &silence["active"]), (&json!(true), &json!(true)));
    assert!(text_of(&silence["active_until"]) > in_hours(24));
}

#[actix_web::test]
async fn they_hold_for_the_servers_that_they_name() {
    let site = Site::start().await;
    let (other_id, _) = site.other_server().await;
    let ends_at = in_hours(1);
    let cases = [
        (json!({"server_id": site.server_id}), true),
        (json!({"server_id": other_id}), false),
        (json!({"tag": "web"}), true),
        (json!({"tag": "db"}), false),
        (json!({"all": true}), true),
    ];

    for (reach, holds) in cases {
        let silence = site.new_silence(with(reach.clone(), json!({"ends_at": ends_at}))).await;
        assert_eq!(is_held(&site).await, holds, "{reach}");
        site.delete(silence_path(&silence)).expect(200).await;
        assert!(!is_held(&site).await, "{reach}");
    }
}

#[actix_web::test]
async fn only_what_is_named_changes() {
    let site = Site::start().await;
    let silence = site.new_silence(json!({"server_id": site.server_id, "reason": "a", "ends_at": in_hours(2)})).await;
    let path = silence_path(&silence);
    let ends_at = in_hours(3);

    let changed = site.put(&path).json(json!({"ends_at": ends_at, "tag": "web"})).expect(200).await;

    let updated_at = changed["updated_at"].clone();
    let fields = json!({"ends_at": ends_at, "active_until": ends_at, "tag": "web", "server_id": null,
                        "updated_at": updated_at});
    assert_eq!(changed, with(silence, fields));
    assert_eq!(site.read(&path).await, changed);
}

#[actix_web::test]
async fn once_becomes_weekly_and_weekly_once() {
    let site = Site::start().await;
    let silence = site.new_silence(json!({"all": true, "reason": "a", "ends_at": in_hours(2)})).await;
    let path = silence_path(&silence);

    let body = json!({"schedule": always(), "starts_at": null, "ends_at": null, "reason": null});
    let weekly = site.put(&path).json(body).expect(200).await;
    assert_eq!((&weekly["starts_at"], &weekly["ends_at"]), (&Value::Null, &Value::Null));
    assert_eq!((&weekly["schedule"]["start"], &weekly["reason"]), (&json!("00:00"), &json!("")));

    let fault = [("body", "ends_at", "value_error.missing")];
    site.put(&path).json(json!({"schedule": null})).expect_faults(422, &fault).await;
    let once = site.put(&path).json(json!({"schedule": null, "ends_at": in_hours(1)})).expect(200).await;
    assert_eq!((&once["schedule"], &once["active"]), (&Value::Null, &json!(true)));
    assert_timestamp(&once["starts_at"]);
}

#[actix_web::test]
async fn one_may_be_ended_early() {
    let site = Site::start().await;
    let body = json!({"all": true, "starts_at": in_hours(-2), "ends_at": in_hours(2)});
    let path = silence_path(&site.new_silence(body).await);

    let ended = site.put(&path).json(json!({"ends_at": in_hours(-1)})).expect(200).await;

    assert_eq!(ended["active"], false);
    assert!(!is_held(&site).await);
}

#[actix_web::test]
async fn what_was_read_may_be_written_back() {
    let site = Site::start().await;
    let once = json!({"server_id": site.server_id, "ends_at": in_hours(2)});

    for body in [once, json!({"all": true, "schedule": always()})] {
        let silence = site.new_silence(body).await;
        let written = site.put(silence_path(&silence)).json(silence.clone()).expect(200).await;
        let same = |silence: Value| with(silence, json!({"updated_at": null}));
        assert_eq!(same(written), same(silence));
    }
}

#[actix_web::test]
async fn the_newest_come_first_and_those_of_a_server_are_found() {
    let site = Site::start().await;
    let ends_at = in_hours(1);
    let first = text_of(&site.new_silence(json!({"server_id": site.server_id, "ends_at": ends_at})).await["id"]);
    let second = text_of(&site.new_silence(json!({"all": true, "ends_at": ends_at})).await["id"]);

    let all = site.listed("/alerts/silences").await;
    assert_eq!(all, (vec![second, first.clone()], "2".to_owned()));
    assert_eq!(site.listed("/alerts/silences?limit=1&offset=1").await, (vec![first.clone()], "2".to_owned()));
    let of_server = site.listed(&format!("/alerts/silences?server_id={}", site.server_id)).await;
    assert_eq!(of_server, (vec![first], "1".to_owned()));
}

#[actix_web::test]
async fn a_deleted_one_is_gone_and_so_is_that_of_a_deleted_server() {
    let site = Site::start().await;
    let ends_at = in_hours(1);
    let path = silence_path(&site.new_silence(json!({"all": true, "ends_at": ends_at})).await);
    let of_server = silence_path(&site.new_silence(json!({"server_id": site.server_id, "ends_at": ends_at})).await);

    let answer = site.delete(&path).expect(200).await;
    site.delete_server().await;

    assert_eq!(answer, json!({"data": null, "message": "Silence deleted"}));
    for path in [path, of_server] {
        site.get(&path).expect_error(404, "not_found").await;
        site.put(&path).json(json!({"reason": "b"})).expect_error(404, "not_found").await;
        site.delete(&path).expect_error(404, "not_found").await;
    }
}

#[actix_web::test]
async fn the_audit_log_tells_who_asked_for_silence() {
    let site = Site::start().await;
    let silence = site.new_silence(json!({"server_id": site.server_id, "ends_at": in_hours(1)})).await;
    let created = site.last_entry().await;
    site.put(silence_path(&silence)).json(json!({"reason": "New disks"})).expect(200).await;
    let updated = site.last_entry().await;
    site.delete(silence_path(&silence)).expect(200).await;
    let deleted = site.last_entry().await;

    for (entry, action) in [(&created, "silence.create"), (&updated, "silence.update"), (&deleted, "silence.delete")] {
        assert_eq!((&entry["action"], &entry["target"]), (&json!(action), &silence["id"]));
        assert_eq!((&entry["server_id"], &entry["user_id"]), (&json!(site.server_id), &json!(site.owner.id)));
    }
    assert_eq!(created["detail"]["ends_at"], silence["ends_at"]);
    assert_eq!(updated["detail"], json!({"reason": {"from": "", "to": "New disks"}}));
    assert_eq!(deleted["detail"]["reason"], "New disks");
}

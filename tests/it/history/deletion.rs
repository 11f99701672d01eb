//! Deleting a server deletes its history, in every form.

use sea_orm::ConnectionTrait;
use signalbox_protocol::{Encoding, Sample};
use uuid::Uuid;

use super::scene::{HOUR, MINUTE, SECOND, Scene, database, days_ago, every, fresh_table, open_hour, rich, rows};
use crate::support::TestService;
use crate::support::agent::FakeAgent;

/// How many rows a server has, unsealed and sealed.
async fn kept(service: &TestService, server_id: Uuid) -> [i64; 2] {
    // PostgreSQL has a type for it, SQLite its bytes.
    let id = match service.state.config.is_embedded() {
        true => format!("X'{}'", server_id.simple()),
        false => format!("'{server_id}'"),
    };
    let condition = format!("server_id = {id}");
    [rows(service, fresh_table(service), &condition).await, rows(service, "history_blocks", &condition).await]
}

#[actix_web::test]
async fn a_deleted_servers_history_is_gone_and_the_others_stays() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let (past, hour) = (days_ago(2) + 3 * HOUR, open_hour());
    let (other, key) = scene.site.other_server().await;
    let mut agent = FakeAgent::online_in(scene.site.service.address, &key, Encoding::MessagePack).await;
    // Blocks, a piece of the current hour, and samples in memory.
    let portions = [(past, past + 2 * HOUR), (hour, hour + 5 * MINUTE), (hour + 5 * MINUTE, hour + 10 * MINUTE)];
    for (seq, portion) in (1..).zip(portions) {
        let samples = every(20 * SECOND, portion, rich);
        agent.store(seq, samples.clone()).await;
        scene.send(samples).await;
        if seq < 3 {
            scene.settle().await;
        }
    }
    for server_id in [scene.site.server_id, other] {
        let kept = kept(&scene.site.service, server_id).await;
        assert!(kept.iter().all(|count| *count > 0), "{kept:?}");
    }
    let delete = scene.site.service.client.delete(format!("/servers/{other}"));
    delete.bearer(&scene.site.owner.token).expect(200).await;

    for when in ["deleted", "settled", "started again", "settled again"] {
        for what in ["history", "series", "names", "processes"] {
            let call = scene.site.service.client.get(format!("/metrics/{other}/{what}"));
            call.bearer(&scene.site.owner.token).expect(404).await;
        }
        assert_eq!(kept(&scene.site.service, other).await, [0, 0], "{when}");
        scene.assert_as_modelled(when, (past, past + 2 * HOUR - 1)).await;
        scene.assert_raw(when, (hour, hour + HOUR)).await;
        match when {
            "settled" => scene = scene.restart().await,
            _ => scene.settle().await,
        }
    }
}

#[actix_web::test]
async fn a_server_of_the_same_name_begins_with_nothing() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 3 * HOUR;
    let range = (start, start + HOUR);
    scene.send(every(20 * SECOND, range, rich)).await;
    scene.settle().await;
    scene.site.delete_server().await;

    let (server_id, key) = scene.site.service.server_with_key(&scene.site.owner, "web-1").await;
    (scene.site.server_id, scene.site.key) = (server_id, key);
    scene.model.samples.clear();
    scene = scene.restart().await;
    scene.settle().await;

    assert!(scene.history(range, "resolution=raw").await.is_empty());
    assert_eq!(scene.answer("names", range, "").await.json()["names"], serde_json::json!([]));
    scene.send(vec![Sample { cpu_percent: 1.0, ..rich(start + MINUTE) }]).await;
    scene.settle().await;
    scene.assert_raw("its own", range).await;
}

/// The state after a crash right after the server's record was deleted.
async fn forget_record(service: &TestService, server_id: Uuid) {
    let id = match service.state.config.is_embedded() {
        true => format!("X'{}'", server_id.simple()),
        false => format!("'{server_id}'"),
    };
    let delete = format!("DELETE FROM servers WHERE id = {id}");
    database(service).await.execute_unprepared(&delete).await.unwrap();
}

#[actix_web::test]
async fn what_a_crash_left_of_a_deleted_server_is_removed() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let (past, hour) = (days_ago(2) + 3 * HOUR, open_hour());
    let (other, key) = scene.site.other_server().await;
    let mut agent = FakeAgent::online_in(scene.site.service.address, &key, Encoding::MessagePack).await;
    for (seq, portion) in (1..).zip([(past, past + 2 * HOUR), (hour, hour + 5 * MINUTE)]) {
        let samples = every(20 * SECOND, portion, rich);
        agent.store(seq, samples.clone()).await;
        scene.send(samples).await;
        scene.settle().await;
    }
    drop(agent);
    forget_record(&scene.site.service, other).await;
    let left = kept(&scene.site.service, other).await;
    assert!(left.iter().all(|count| *count > 0), "{left:?}");

    scene = scene.restart().await;
    scene.settle().await;

    assert_eq!(kept(&scene.site.service, other).await, [0, 0]);
    let stays = kept(&scene.site.service, scene.site.server_id).await;
    assert!(stays.iter().all(|count| *count > 0), "{stays:?}");
    scene.assert_as_modelled("after it", (past, past + 2 * HOUR - 1)).await;
}

#[actix_web::test]
async fn a_history_that_cannot_be_removed_at_once_is_removed_later_and_the_server_is_gone() {
    let mut scene = Scene::with(20 * SECOND, |config| config.database_url = None).await;
    let past = days_ago(2) + 3 * HOUR;
    scene.send(every(20 * SECOND, (past, past + 2 * HOUR), rich)).await;
    scene.settle().await;
    let database = database(&scene.site.service).await;
    let failing = "CREATE TRIGGER failing BEFORE DELETE ON history_blocks BEGIN SELECT RAISE(ABORT, 'no'); END";
    database.execute_unprepared(failing).await.unwrap();

    scene.site.delete_server().await;

    let path = format!("/servers/{}", scene.site.server_id);
    scene.site.service.client.get(path).bearer(&scene.site.owner.token).expect_error(404, "not_found").await;
    assert!(kept(&scene.site.service, scene.site.server_id).await[1] > 0);
    database.execute_unprepared("DROP TRIGGER failing").await.unwrap();
    scene.settle().await;
    assert_eq!(kept(&scene.site.service, scene.site.server_id).await, [0, 0]);
}

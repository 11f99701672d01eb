//! The history on PostgreSQL, where several instances read and move on the same one.

use std::path::PathBuf;

use entity::{history_block, history_journal, history_piece};
use migration::{Migrator, MigratorTrait};
use sea_orm::{
    ActiveModelTrait, ActiveValue, ColumnTrait, Database, DatabaseConnection, EntityTrait, ExprTrait, IntoActiveModel,
    QueryFilter, Set,
};
use signalbox::config::{Config, NatsConfig, Retention};
use signalbox::store::Commit;
use signalbox::store::history::FreshSample;
use signalbox_history::codec;
use signalbox_protocol::{Sample, Timestamp};
use tempfile::TempDir;
use uuid::Uuid;

use super::scene::{DAY, HOUR, MINUTE, SECOND, Scene, database, days_ago, every, rich, rows, still};
use crate::support::nats::Nats;
use crate::support::{Storage, TestService, eventually, in_time, text_of, version_1, write_private};

const MIGRATION: &str = "m20261124_000001_postgres_history";

/// A server at one of two instances, and the other one; none on SQLite.
async fn two_instances() -> Option<(Scene, TestService, Nats)> {
    if Storage::fresh().await.config().is_embedded() {
        return None;
    }
    let secrets = tempfile::tempdir().unwrap();
    let nats = Nats::start().await;
    let joins = |config: &mut Config| {
        let url = nats.url();
        config.nats = Some(NatsConfig { url: url.as_str().into(), credentials_file: None, ca_file: None });
        config.jwt_secret_file = Some(secret_of(&secrets, "signing-key"));
        config.encryption_key_file = Some(secret_of(&secrets, "encryption-key"));
    };
    let scene = Scene::with(MINUTE, joins).await;
    let first = scene.site.service.state.config.clone();
    let other = TestService::start_with(|other| {
        still(other);
        joins(other);
        other.database_url = first.database_url.clone();
    })
    .await;
    Some((scene, other, nats))
}

/// A secret that both read when they start.
fn secret_of(secrets: &TempDir, name: &str) -> PathBuf {
    let file = secrets.path().join(name);
    write_private(&file, &format!("{name} that only tests know, long enough for a key"));
    file
}

fn this_hour() -> i64 {
    hour_of(Timestamp::now())
}

/// When the hour of this time began.
fn hour_of(at: Timestamp) -> i64 {
    at.as_millis() / HOUR * HOUR
}

/// Whether there is a table of this name.
async fn has_table(scene: &Scene, name: &str) -> bool {
    rows(&scene.site.service, "pg_class", &format!("relname = '{name}'")).await > 0
}

/// Takes the schema back to before the migration.
async fn take_back(database: &DatabaseConnection) {
    let later = Migrator::migrations().iter().rev().position(|migration| migration.name() == MIGRATION).unwrap();
    Migrator::down(database, Some(later as u32 + 1)).await.unwrap();
}

#[actix_web::test]
async fn an_acknowledged_sample_is_seen_by_another_instance_at_once() {
    let Some((mut scene, other, _nats)) = two_instances().await else { return };
    // None of them is in the future, where the latest one would not be looked for.
    let hour = hour_of(Timestamp::now().plus_millis(-2 * MINUTE));
    for minute in 0..3 {
        let sample = rich(hour + minute * MINUTE);

        scene.send(vec![sample.clone()]).await;

        let range = format!("start={}&end={}", Timestamp::from_millis(hour), Timestamp::from_millis(hour + HOUR));
        let path = format!("/metrics/{}/history?resolution=raw&{range}", scene.site.server_id);
        let history = other.client.get(path).bearer(&scene.site.owner.token).expect(200).await;
        let shown: Vec<String> = history.as_array().unwrap().iter().map(|it| text_of(&it["timestamp"])).collect();
        let expected: Vec<String> =
            (0..=minute).map(|minute| Timestamp::from_millis(hour + minute * MINUTE).to_string()).collect();
        assert_eq!(shown, expected);
    }
    let latest = other.state.metrics.history.latest_of(&[scene.site.server_id, Uuid::nil()]).await.unwrap();
    assert_eq!(latest.len(), 1);
    assert_eq!(latest[&scene.site.server_id].sample.timestamp.as_millis(), hour + 2 * MINUTE);
    scene.assert_raw("the first", (hour, hour + HOUR)).await;
}

#[actix_web::test]
async fn two_that_seal_the_same_at_once_leave_each_sample_once() {
    let Some((mut scene, other, _nats)) = two_instances().await else { return };
    let start = days_ago(3);
    let range = (start, start + 30 * HOUR - 1);
    let mut sent = 0;
    // Each time into the same hours, and so into existing blocks.
    for round in 0..4 {
        let samples = every(5 * MINUTE, range, |at| rich(at + round * 13 * SECOND));
        sent += samples.len();
        scene.send(samples).await;

        let (one, two) = futures_util::join!(
            scene.site.service.state.metrics.archive.settle(),
            other.state.metrics.archive.settle()
        );

        one.and(two).unwrap();
    }

    // While shards move from one to the other, neither of them seals what is in them.
    eventually("all of it is sealed", async || {
        scene.settle().await;
        other.state.metrics.archive.settle().await.unwrap();
        (rows(&scene.site.service, "history_samples", "TRUE").await == 0).then_some(())
    })
    .await;
    assert_eq!(samples_in_blocks(&scene).await, sent as i64);
    scene.assert_as_modelled("sealed by two", range).await;
}

/// How many samples the blocks say they have.
async fn samples_in_blocks(scene: &Scene) -> i64 {
    let database = database(&scene.site.service).await;
    let raw = history_block::Column::Tier.eq(0).and(history_block::Column::Part.eq(0));
    let blocks = history_block::Entity::find().filter(raw).all(&database).await.unwrap();
    database.close().await.unwrap();
    blocks.iter().map(|block| block.rows).sum()
}

#[actix_web::test]
async fn partitions_come_with_what_needs_them_and_go_with_it() {
    let keeping = |days: u32| {
        move |config: &mut Config| {
            config.retention = Retention { raw_days: days, minute_days: days, quarter_days: days, hour_days: days };
        }
    };
    let mut scene = Scene::with(20 * MINUTE, keeping(60)).await;
    if scene.site.service.state.config.is_embedded() {
        return;
    }
    // Samples that are this late have a partition per day.
    let (old, young) = (days_ago(40), days_ago(4));
    let names = |at: i64| {
        let hour = at / HOUR;
        [format!("history_samples_{hour}_24"), format!("history_blocks_0_{hour}")]
    };
    for start in [old, young] {
        scene.send(every(20 * MINUTE, (start, start + HOUR), rich)).await;
        let [samples, blocks] = names(start);
        assert!(has_table(&scene, &samples).await && !has_table(&scene, &blocks).await);
    }

    // Nothing waits for a partition to be dropped: it is dropped when nothing uses it.
    eventually("the samples' partitions go", async || {
        scene.settle().await;
        let [old, young] = [old, young].map(|at| names(at)[0].clone());
        (!has_table(&scene, &old).await && !has_table(&scene, &young).await).then_some(())
    })
    .await;

    scene.assert_raw("sealed", (old, young + DAY)).await;
    assert!(has_table(&scene, &names(old)[1]).await && has_table(&scene, &names(young)[1]).await);
    // Late samples get a partition again.
    scene.send(vec![rich(young + 7 * SECOND)]).await;
    scene.assert_raw("late", (old, young + DAY)).await;
    scene = scene.restart_with(keeping(30)).await;
    eventually("the blocks' partition goes", async || {
        scene.settle().await;
        (!has_table(&scene, &names(old)[1]).await).then_some(())
    })
    .await;
    assert!(has_table(&scene, &names(young)[1]).await);
    scene.assert_raw("kept", (young, young + DAY)).await;
}

/// Puts the rows of an embedded database, of one server, into the tables of the version before.
async fn copy(from: &DatabaseConnection, to: &DatabaseConnection, server_id: Uuid) {
    let blocks = history_block::Entity::find().all(from).await.unwrap();
    assert!(!blocks.is_empty());
    for block in blocks {
        let block = history_block::ActiveModel { server_id: Set(server_id), ..block.into_active_model() };
        history_block::Entity::insert(block.reset_all()).exec_without_returning(to).await.unwrap();
    }
    for piece in history_piece::Entity::find().all(from).await.unwrap() {
        let piece = history_piece::ActiveModel { server_id: Set(server_id), ..piece.into_active_model() };
        history_piece::Entity::insert(piece.reset_all()).exec_without_returning(to).await.unwrap();
    }
}

async fn insert_journal(database: &DatabaseConnection, server_id: Uuid, samples: &[Sample]) {
    let samples: Vec<Vec<u8>> = samples.iter().map(version_1::sample).collect();
    let row = history_journal::ActiveModel {
        id: ActiveValue::NotSet,
        writer: Set(Uuid::now_v7()),
        data: Set(version_1::journal_row(server_id, &samples)),
    };
    history_journal::Entity::insert(row).exec(database).await.unwrap();
}

#[actix_web::test]
async fn a_database_of_the_version_before_gives_the_same_answers() {
    let mut scene = Scene::of_interval(MINUTE).await;
    if scene.site.service.state.config.is_embedded() {
        return;
    }
    // An embedded database has what PostgreSQL had before.
    let mut before = Scene::with(MINUTE, |config| config.database_url = None).await;
    let (day, hour) = (days_ago(2), this_hour());
    before.send(every(MINUTE, (day, day + 5 * HOUR), rich)).await;
    before.send(every(MINUTE, (hour, hour + 10 * MINUTE), rich)).await;
    before.settle().await;
    // Late ones are in the journal, others beside them in the first format of the history.
    let late = every(MINUTE, (day + HOUR, day + 2 * HOUR), |at| rich(at + 30 * SECOND));
    let journaled = [late.clone(), every(MINUTE, (hour + 10 * MINUTE, hour + 20 * MINUTE), rich)];
    let of_before = database(&before.site.service).await;
    scene.model = before.model;
    journaled.iter().flatten().for_each(|sample| scene.model.add(sample));
    let server_id = scene.site.server_id;

    let fill = async |storage: &Storage| {
        let database = Database::connect(storage.config().database_url()).await.unwrap();
        take_back(&database).await;
        copy(&of_before, &database, server_id).await;
        for samples in &journaled {
            insert_journal(&database, server_id, samples).await;
        }
        database.close().await.unwrap();
    };
    scene = scene.restart_changed(fill, |_| {}).await;

    assert_eq!(rows(&scene.site.service, "history_journal", "TRUE").await, 0, "it was taken over");
    let (past, recent) = ((day, day + 5 * HOUR - 1), (hour, hour + HOUR - 1));
    for when in ["started", "settled", "started again"] {
        scene.assert_raw(when, past).await;
        scene.assert_raw(when, recent).await;
        // The first rate after late samples is calculated again when they are sealed.
        if when != "started" {
            scene.assert_as_modelled(when, past).await;
        }
        match when {
            "started" => scene.settle().await,
            _ => scene = scene.restart().await,
        }
    }
}

#[actix_web::test]
async fn the_history_goes_back_to_the_version_before_and_comes_again() {
    let mut scene = Scene::of_interval(MINUTE).await;
    if scene.site.service.state.config.is_embedded() {
        return;
    }
    let (day, hour) = (days_ago(2), this_hour());
    let (past, recent) = ((day, day + 3 * HOUR - 1), (hour, hour + HOUR - 1));
    scene.send(every(MINUTE, (day, day + 3 * HOUR), rich)).await;
    scene.settle().await;
    scene.send(every(MINUTE, (day, day + HOUR), |at| rich(at + 30 * SECOND))).await;
    scene.send(every(MINUTE, (hour, hour + 10 * MINUTE), rich)).await;

    let back = async |storage: &Storage| {
        let database = Database::connect(storage.config().database_url()).await.unwrap();
        take_back(&database).await;
        assert!(history_block::Entity::find().all(&database).await.unwrap().len() > 3);
        Migrator::up(&database, None).await.unwrap();
        database.close().await.unwrap();
    };
    scene = scene.restart_changed(back, |_| {}).await;

    for when in ["started", "settled"] {
        scene.assert_raw(when, past).await;
        scene.assert_raw(when, recent).await;
        if when != "started" {
            scene.assert_as_modelled(when, past).await;
        }
        scene.settle().await;
    }
}

#[actix_web::test]
async fn late_samples_that_keep_coming_wait_for_the_next_look() {
    let scene = Scene::of_interval(SECOND).await;
    if scene.site.service.state.config.is_embedded() {
        return;
    }
    let (store, server_id) = (&scene.site.service.state.store, scene.site.server_id);
    let comes = async |number: i64| {
        let at = days_ago(2) + number * SECOND;
        let data = codec::encode_alone(&rich(at)).unwrap();
        let samples = vec![FreshSample { server_id, session_id: Uuid::nil(), at, data }];
        store.commit(Uuid::nil(), &Commit { samples, ..Commit::default() }).await.unwrap();
    };
    comes(0).await;
    let keeps_coming = async {
        for number in 1.. {
            comes(number).await;
        }
    };

    tokio::select! {
        () = in_time("the end of a look", scene.settle()) => {}
        () = keeps_coming => {}
    }

    assert!(rows(&scene.site.service, "history_blocks", "tier = 0").await > 0);
}

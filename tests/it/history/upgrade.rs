//! The first format of the history, one row per sample: a start converts it, and nothing is lost.

use sea_orm::{ConnectionTrait, Statement, Value};
use signalbox_protocol::Sample;
use uuid::Uuid;

use super::scene::{HOUR, MINUTE, SECOND, Scene, database, days_ago, every, rich, rows};
use crate::support::version_1;

/// Writes rows in the first format.
async fn insert(scene: &Scene, server_id: Uuid, encoded: Vec<(i64, Vec<u8>)>) {
    let database = database(&scene.site.service).await;
    let backend = database.get_database_backend();
    for some in encoded.chunks(200) {
        let places: Vec<String> =
            (0..some.len()).map(|row| format!("(${}, ${}, ${})", 3 * row + 1, 3 * row + 2, 3 * row + 3)).collect();
        let insert = format!("INSERT INTO samples (server_id, at, data) VALUES {}", places.join(", "));
        let values: Vec<Value> =
            some.iter().cloned().flat_map(|(at, data)| [server_id.into(), at.into(), data.into()]).collect();
        database.execute_raw(Statement::from_sql_and_values(backend, insert, values)).await.unwrap();
    }
    database.close().await.unwrap();
}

fn encoded(samples: &[Sample]) -> Vec<(i64, Vec<u8>)> {
    samples.iter().map(|sample| (sample.timestamp.as_millis(), version_1::sample(sample))).collect()
}

#[actix_web::test]
async fn samples_of_the_first_form_are_found_again() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(2) + 20 * HOUR;
    let range = (start, start + 20 * HOUR - 1);
    let old = every(MINUTE, (start, start + 20 * HOUR), rich);
    let (other, _) = scene.site.other_server().await;
    insert(&scene, other, encoded(&old[..700])).await;
    insert(&scene, scene.site.server_id, encoded(&old)).await;
    old.iter().for_each(|sample| scene.model.add(sample));

    scene = scene.restart().await;
    scene.assert_as_modelled("after the start", range).await;
    assert_eq!(rows(&scene.site.service, "samples", "TRUE").await, 0, "they were moved, not copied");
    // Some are sent again, others come between them.
    let late = every(MINUTE, (start, start + 3 * HOUR), |at| rich(at + (at / MINUTE % 2) * 7 * SECOND));
    scene.send(late).await;
    scene.settle().await;
    scene.assert_as_modelled("settled", range).await;
    scene = scene.restart().await;
    scene.assert_as_modelled("started again", range).await;

    scene.site.server_id = other;
    scene.model.samples = old[..700].iter().map(|sample| (sample.timestamp.as_millis(), sample.clone())).collect();
    scene.assert_as_modelled("the other server", range).await;
}

#[actix_web::test]
async fn a_row_of_the_first_form_that_cannot_be_read_costs_itself_alone() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(2);
    let old = every(MINUTE, (start, start + 2 * HOUR), rich);
    let mut rows = encoded(&old);
    rows[50].1.truncate(20);
    insert(&scene, scene.site.server_id, rows).await;
    old.iter().enumerate().filter(|(place, _)| *place != 50).for_each(|(_, sample)| scene.model.add(sample));

    scene = scene.restart().await;
    scene.settle().await;

    scene.assert_raw("the others", (start, start + 2 * HOUR)).await;
}

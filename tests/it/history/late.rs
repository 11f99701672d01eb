//! Samples that come late, twice or in any order: an agent was away, or sends again what was not acknowledged.

use signalbox_protocol::Sample;

use super::reference::points_of;
use super::scene::{HOUR, MINUTE, SECOND, Scene, days_ago, every, network, rich, scattered};
use crate::support::text_of;

/// Another sample that an agent with the same clock could have taken at that time.
fn other(at: i64) -> Sample {
    Sample { cpu_percent: 99.99, network: vec![network("eth9", 1, 2)], ..rich(at) }
}

#[actix_web::test]
async fn an_hour_that_is_sealed_takes_samples_before_between_and_after_its_own() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 7 * HOUR;
    let range = (start, start + HOUR - 1);
    let all = every(20 * SECOND, (start, start + HOUR), rich);
    let (first, late): (Vec<_>, Vec<_>) = all.into_iter().partition(|sample| {
        let minute = (sample.timestamp.as_millis() - start) / MINUTE;
        (20..50).contains(&minute) && minute % 7 != 0
    });
    scene.send(first).await;
    scene.settle().await;

    scene.send(late).await;

    scene.assert_as_modelled("late ones in memory", range).await;
    scene.settle().await;
    scene.assert_as_modelled("sealed together", range).await;
    scene = scene.restart().await;
    scene.assert_as_modelled("after a restart", range).await;
}

#[actix_web::test]
async fn of_two_samples_with_one_time_the_first_stays() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 7 * HOUR;
    let range = (start, start + HOUR - 1);
    for when in ["in memory", "in a day", "in a day again"] {
        scene.send(every(20 * SECOND, (start, start + HOUR), rich)).await;
        scene.send(every(20 * SECOND, (start, start + HOUR), other)).await;
        scene.assert_as_modelled(when, range).await;
        scene.settle().await;
        scene.assert_as_modelled(&format!("{when}, settled"), range).await;
    }
}

#[actix_web::test]
async fn an_hour_that_comes_after_the_next_one_gives_that_its_first_rate() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(2) + 7 * HOUR;
    let range = (start, start + 3 * HOUR - 1);
    scene.send(every(MINUTE, (start + HOUR, start + 3 * HOUR), rich)).await;
    scene.settle().await;

    scene.send(every(MINUTE, (start, start + HOUR), rich)).await;

    scene.settle().await;
    scene.assert_as_modelled("settled", range).await;
}

#[actix_web::test]
async fn samples_in_any_order_give_what_they_give_in_order() {
    let mut scene = Scene::of_interval(30 * SECOND).await;
    let start = days_ago(3) + 20 * HOUR;
    let range = (start, start + 30 * HOUR - 1);
    let mut samples = every(30 * SECOND, (start, start + 30 * HOUR), rich);
    for index in (1..samples.len()).rev() {
        samples.swap(index, scattered(index as u64, index as u64 + 1) as usize);
    }

    for (number, batch) in samples.chunks(300).enumerate() {
        scene.send(batch.to_vec()).await;
        if number % 4 == 2 {
            // Earlier samples are sent again, and different ones with the same times.
            scene.send(batch.iter().take(50).map(|sample| other(sample.timestamp.as_millis())).collect()).await;
        }
        if scattered(number as u64, 3) == 0 {
            scene.settle().await;
        }
        if number == 6 {
            scene = scene.restart().await;
        }
        if number % 5 == 0 {
            scene.assert_raw(&format!("after {number}"), range).await;
        }
    }

    scene.assert_as_modelled("at last", range).await;
    scene.settle().await;
    scene.assert_as_modelled("settled", range).await;
}

#[actix_web::test]
async fn the_latest_sample_is_the_newest_after_a_restart() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 7 * HOUR;
    scene.send(every(20 * SECOND, (start, start + HOUR), rich)).await;
    let latest = scene.site.latest().await;
    scene.settle().await;
    // It comes late, and is still in memory at the restart.
    scene.send(vec![rich(start - HOUR)]).await;

    scene = scene.restart().await;

    assert_eq!(text_of(&scene.site.latest().await["timestamp"]), text_of(&latest["timestamp"]));
}

#[actix_web::test]
async fn an_agent_that_slows_down_keeps_its_rates() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(2) + 7 * HOUR;
    let range = (start, start + 8 * HOUR - 1);
    scene.send(every(5 * SECOND, (start, start + HOUR), rich)).await;
    scene.send(every(MINUTE, (start + HOUR, start + 8 * HOUR), rich)).await;

    // The single distance at which it slowed down may be a gap; from the next on it is none.
    let slow = (start + HOUR + 2 * MINUTE) / 1000;
    for when in ["in memory", "settled"] {
        for resolution in ["raw", "1m"] {
            let body = scene.series(range, &format!("resolution={resolution}")).await;
            let told = points_of(&body)["network_in:eth0"].range(slow..).count();
            assert_eq!(told, 7 * 60 - 2, "{when}, {resolution}");
        }
        scene.settle().await;
    }
}

#[actix_web::test]
async fn samples_sent_twice_count_once_for_what_fits() {
    let mut scene = Scene::of_interval(10 * SECOND).await;
    let start = days_ago(2) + 7 * HOUR;
    let range = (start, start + HOUR - 1);
    for _ in 0..2 {
        scene.send(every(10 * SECOND, (start, start + HOUR), rich)).await;
    }

    let history = scene.history(range, "max_points=360").await;

    assert_eq!(history.len(), 360);
}

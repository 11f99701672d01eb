//! Rates of sealed data: none is lost that memory still had.

use super::reference::assert_series;
use super::scene::{HOUR, MINUTE, SECOND, Scene, days_ago, every, rich};

#[actix_web::test]
async fn a_backlog_of_two_days_has_a_rate_at_every_hours_beginning() {
    let mut scene = Scene::of_interval(5 * MINUTE).await;
    let start = days_ago(4);
    let range = (start, start + 48 * HOUR - 1);
    scene.send(every(5 * MINUTE, range, rich)).await;

    for when in ["in memory", "settled"] {
        let series = scene.series(range, "resolution=1m&names=network_in:eth0").await;
        let mut expected = scene.model.series(Some(MINUTE), range);
        expected.retain(|name, _| name == "network_in:eth0");
        let shown = series["series"]["network_in:eth0"]["avg"].as_array().unwrap();
        let rates = shown.iter().filter(|rate| !rate.is_null()).count();
        assert_eq!(rates, expected["network_in:eth0"].len(), "{when}: how many rates");
        assert_series(when, &series, &expected);
        scene.settle().await;
    }
}

#[actix_web::test]
async fn an_agent_of_one_sample_an_hour_has_rates() {
    let mut scene = Scene::of_interval(HOUR).await;
    let start = days_ago(3);
    let range = (start, start + 24 * HOUR - 1);
    scene.send(every(HOUR, (start + MINUTE, range.1), rich)).await;

    for when in ["in memory", "settled"] {
        for (resolution, width) in [("raw", None), ("1h", Some(HOUR))] {
            let series = scene.series(range, &format!("resolution={resolution}")).await;
            assert_series(&format!("{when}, {resolution}"), &series, &scene.model.series(width, range));
        }
        scene.settle().await;
    }
}

#[actix_web::test]
async fn late_samples_at_an_hours_end_change_the_next_hours_first_rate() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 3 * HOUR;
    scene.send(every(20 * SECOND, (start, start + 2 * HOUR), rich)).await;
    scene.settle().await;

    scene.send(vec![rich(start + HOUR - 7 * SECOND)]).await;

    scene.settle().await;
    scene.assert_as_modelled("settled", (start, start + 2 * HOUR - 1)).await;
}

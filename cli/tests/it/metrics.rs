//! The history of a real agent.

use crate::support::{Site, eventually};

#[tokio::test]
async fn series_are_listed_and_shown_in_every_format() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &[]).await;
    let path = format!("/metrics/{}/series?names=memory_percent", agent.server_id);
    eventually("two samples are stored", async || {
        let answer = site.get(&path).await;
        (answer["timestamps"].as_array()?.len() >= 2).then_some(())
    })
    .await;

    let names = site.run(&["metrics", "web-1", "-q", "memory_p"]).await;
    let table = site.run(&["metrics", "web-1", "memory_percent", "cpu_percent", "--since", "10m"]).await;
    let csv = site.run(&["metrics", "web-1", "memory_percent", "-o", "csv"]).await;
    let json = site.run(&["metrics", "web-1", "memory_percent", "-o", "json"]).await;

    assert!(names.done().contains("memory_percent     percent  Share of the memory"), "{names:?}");
    let lines: Vec<&str> = table.done().lines().collect();
    assert_eq!(lines.len(), 3, "{table:?}");
    assert!(lines[1].starts_with("memory_percent") && lines[1].matches(" %").count() == 4, "{table:?}");
    assert!(csv.done().starts_with("time,series,mean,min,max\r\n20"), "{csv:?}");
    assert!(csv.stdout.lines().nth(1).unwrap().contains("Z,memory_percent,"), "{csv:?}");
    assert!(json.json()["series"]["memory_percent"]["avg"].is_array());
}

#[tokio::test]
async fn an_unknown_series_names_similar_ones() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &[]).await;
    // A sample whose disks could not be read in time has none of theirs.
    eventually("a sample with disks is stored", async || {
        let answer = site.get(&format!("/metrics/{}/names?q=disk_percent:", agent.server_id)).await;
        (!answer["names"].as_array()?.is_empty()).then_some(())
    })
    .await;

    let similar = site.run(&["metrics", "web-1", "disk_percent:/nowhere"]).await;
    let unknown = site.run(&["metrics", "web-1", "frobnication"]).await;
    let moment = site.run(&["metrics", "web-1", "cpu_percent", "--since", "yesterday"]).await;

    similar.refused(1, "has no series \"disk_percent:/nowhere\" in this time: there is disk_percent:");
    unknown.refused(1, "`signalboxctl metrics web-1` lists all");
    moment.refused(2, "is no time: write 15m, 2h, 1d");
}

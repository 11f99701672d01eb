//! The real agent on this machine: its measurements cross thresholds.

use serde_json::Value;

use crate::support::alerts::{Alarms, Threshold};
use crate::support::machine::Machine;
use crate::support::site::Site;
use crate::support::text_of;

#[actix_web::test]
async fn the_agents_measurements_raise_alerts_and_so_does_its_end() {
    let site = Site::start_with(|config| config.timing.offline_patience = std::time::Duration::from_millis(1)).await;
    let alarms = Alarms::at(&site);
    let mut thresholds = Vec::new();
    for metric in ["cpu", "memory", "disk", "load", "network_in", "network_out"] {
        thresholds.push((metric, alarms.add(Threshold::on(metric, "gte", 0.0)).await));
    }
    let never = alarms.add(Threshold::on("memory", "lt", 0.0)).await;
    let offline = alarms.add(Threshold::offline(1.0)).await;
    let machine = Machine::new();
    let agent = machine.agent(site.service.address, &site.key, &[]);

    for (metric, threshold) in &thresholds {
        // Not every machine has an interface other than the loopback.
        if metric.starts_with("network") && !has_interface(&site).await {
            continue;
        }
        let alert = alarms.until_only(*threshold, "active").await;
        assert!(text_of(&alert["message"]).contains("web-1"), "{alert}");
        assert!(alert["value"].as_f64().unwrap() >= 0.0, "{alert}");
    }
    alarms.expect_none(never).await;
    alarms.expect_none(offline).await;
    agent.signal("KILL");
    alarms.until_only(offline, "active").await;
    let _agent = machine.agent(site.service.address, &site.key, &[]);

    alarms.until_only(offline, "resolved").await;
    for (_, threshold) in &thresholds {
        assert!(alarms.of_threshold(*threshold).await.len() <= 1, "the others stay open");
    }
}

async fn has_interface(site: &Site) -> bool {
    let latest = site.latest().await;
    let is_other = |network: &Value| network["interface"] != "lo";
    latest["network"].as_array().unwrap().iter().any(is_other)
}

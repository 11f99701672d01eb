//! Programs that do not run for two minutes of real time: data that waits in the kernel's buffers, and timers that are due
//! together, cannot be simulated by setting a clock.

use std::time::Duration;

use serde_json::Value;
use signalbox_protocol::Timestamp;

use super::Host;
use crate::support::eventually;

const STOPPED_FOR: Duration = Duration::from_secs(120);

/// The longest time between two samples since some time, in milliseconds, and how many there are; none before there are two.
async fn longest_gap(host: &Host, since: Timestamp) -> Option<(i64, usize)> {
    let kept = host.kept((since, Timestamp::now())).await;
    let times: Vec<Timestamp> = kept.iter().map(|text| Timestamp::parse(text).unwrap()).collect();
    let longest_ms = times.windows(2).map(|two| two[1].millis_since(two[0])).max()?;
    Some((longest_ms, times.len()))
}

#[actix_web::test]
async fn a_program_that_stops_for_two_minutes_continues_and_connected_agents_are_not_missed() {
    let (of_agent, of_service) = (Host::start().await, Host::start().await);
    of_agent.threshold("offline", "gt", 100.0).await;
    of_agent.threshold("offline", "gt", 180.0).await;
    of_service.threshold("offline", "gt", 20.0).await;
    let (stopped, _runs) = (of_agent.agent(), of_service.agent());
    of_agent.until_live("at first").await;
    of_service.until_live("at first").await;
    // Including what was measured just before.
    let began = Timestamp::now().plus_millis(-10_000);

    stopped.signal("STOP");
    of_service.service.signal("STOP");
    tokio::time::sleep(STOPPED_FOR).await;
    stopped.signal("CONT");
    of_service.service.signal("CONT");

    of_service.until_live("after the service's pause").await;
    of_agent.until_live("after the agent's pause").await;
    of_agent.until_offset("after the agent's pause").await;
    // The service was not there to see its agent, which was connected all the time and stored its samples.
    eventually("every sample of the service's pause is kept", async || {
        let (longest_ms, count) = longest_gap(&of_service, began).await?;
        // Of 240 and more. The machine that runs all this may have skipped half of them.
        (longest_ms < 20_000 && count > 120).then_some(())
    })
    .await;
    assert_eq!(of_service.alerts().await, Vec::<Value>::new());
    assert_eq!((of_service.clock_events().await, of_agent.clock_events().await), (Vec::new(), Vec::new()));
    // The agent was away for two minutes, and the events say so.
    let alerts = eventually("its absence has ended", async || {
        Some(of_agent.alerts().await).filter(|alerts| alerts.iter().all(|alert| alert["status"] == "resolved"))
    })
    .await;
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!((&alerts[0]["metric_type"], &alerts[0]["threshold_value"]), (&"offline".into(), &100.0.into()));
    // A sample is shown before it is stored.
    eventually("its absence is a gap between what it measured before and after", async || {
        let (longest_ms, _) = longest_gap(&of_agent, began).await?;
        (100_000..170_000).contains(&longest_ms).then_some(())
    })
    .await;
}

//! Open series: described once per connection, and the meaning of samples of earlier connections and runs.

use std::collections::BTreeMap;

use signalbox_agent::Catalog;
use signalbox_agent::catalog::Metric;
use signalbox_protocol::Sample;
use signalbox_protocol::agent::{AgentMessage, Metrics};
use signalbox_protocol::series::{SeriesDescription, Unit};
use tokio::net::TcpStream;

use crate::agent::{Agent, config, state_dir};
use crate::service::{Peer, Service};

const BUSY: Metric<'_> = Metric::gauge("disk_busy", Unit::Percent, "Share of the time in which a device had requests.");

/// A catalog in which these devices have ids in this order.
fn catalog(devices: &[&str]) -> Catalog {
    let catalog = Catalog::default();
    devices.iter().for_each(|device| assert!(catalog.id_of(BUSY, Some(device)).is_some()));
    catalog
}

fn with_values(values: &[(u16, f64)]) -> Sample {
    Sample { cpu_percent: 50.0, memory_percent: 25.0, values: values.to_vec(), ..Sample::default() }
}

/// The descriptions on one connection.
#[derive(Default)]
struct Described(BTreeMap<u16, SeriesDescription>);

impl Described {
    /// The next samples. They name only described series, each only once.
    async fn metrics(&mut self, peer: &mut Peer<TcpStream>) -> Metrics {
        loop {
            match peer.message().await {
                AgentMessage::Series { series } => {
                    for one in series {
                        let earlier = self.0.insert(one.id, one);
                        assert_eq!(earlier, None, "described twice");
                    }
                }
                AgentMessage::Metrics(metrics) => return metrics,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Device and value of each value.
    fn values(&self, sample: &Sample) -> Vec<(String, f64)> {
        let meaning = |(id, value): &(u16, f64)| (self.0[id].target.clone().unwrap(), *value);
        sample.values.iter().map(meaning).collect()
    }
}

#[tokio::test]
async fn each_connection_describes_series_once_and_before_their_values() {
    let service = Service::start().await;
    let like = with_values(&[(0, 1.0), (1, 2.0)]);
    let agent = Agent::start_with_series(config(&service.url()), 0, like, catalog(&["sda", "sdb"]));

    for _ in 0..2 {
        let (mut peer, mut described) = (service.accept_authenticated().await, Described::default());
        for _ in 0..3 {
            let metrics = described.metrics(&mut peer).await;
            for sample in &metrics.samples {
                assert_eq!(described.values(sample), [("sda".to_owned(), 1.0), ("sdb".to_owned(), 2.0)]);
            }
        }
        peer.close(1012, "restarting").await;
    }

    agent.stop().await;
}

#[tokio::test]
async fn samples_that_an_earlier_run_left_mean_the_same_series() {
    let (service, state) = (Service::start().await, state_dir());
    let of_state = |url: &str| signalbox_agent::Config { state_dir: Some(state.path().into()), ..config(url) };
    // Nothing listens there.
    let unreachable = of_state("http://127.0.0.1:1");
    let like = with_values(&[(0, 1.0), (1, 2.0)]);
    let mut first = Agent::start_with_series(unreachable, 0, like, catalog(&["sda", "sdb"]));
    first.has_taken(3).await;
    first.stop().await;

    let like = with_values(&[(0, 30.0), (1, 20.0)]);
    let agent = Agent::start_with_series(of_state(&service.url()), 1_000, like, catalog(&["sdc", "sdb"]));
    let (mut peer, mut described) = (service.accept_authenticated().await, Described::default());
    let (mut early, mut late) = (0, 0);
    while early < 3 || late < 3 {
        let metrics = described.metrics(&mut peer).await;
        for sample in &metrics.samples {
            let is_early = sample.timestamp.as_millis() <= 1_000;
            let expected = if is_early { [("sda", 1.0), ("sdb", 2.0)] } else { [("sdc", 30.0), ("sdb", 20.0)] };
            assert_eq!(described.values(sample), expected.map(|(device, value)| (device.to_owned(), value)));
            early += i32::from(is_early);
            late += i32::from(!is_early);
        }
        peer.ack(metrics.seq).await;
    }

    agent.stop().await;
}

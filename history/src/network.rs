//! The rates of network interfaces, from one sample to the next.

use signalbox_protocol::Sample;
use signalbox_protocol::sample::NetworkUsage;
use signalbox_protocol::traffic::in_total;

use super::rollup;

/// The previous sample.
#[derive(Debug, Clone, Copy)]
pub struct PreviousSample<'b> {
    /// The sample.
    pub sample: &'b Sample,
    /// Its distance from the one before it; 0 where that is unknown.
    pub elapsed_ms: i64,
}

/// What a machine receives and sends, in bytes per second. None where it is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Bytes received per second.
    pub received: Option<f64>,
    /// Bytes sent per second.
    pub sent: Option<f64>,
}

impl PreviousSample<'_> {
    /// The rate of a counter of the interface at this index since the previous sample, in bytes per second. None where the
    /// interface is new, across a gap, and where the counter began again at 0.
    pub fn rate(self, now: &Sample, index: usize, counter: fn(&NetworkUsage) -> u64) -> Option<f64> {
        let network = now.network.get(index)?;
        let [count, count_before] = [network, self.same(index, &network.interface)?].map(counter);
        let elapsed_ms = now.timestamp.millis_since(self.sample.timestamp);
        let rate = rollup::rate(count.cast_signed(), count_before.cast_signed(), elapsed_ms, self.gap_ms())?;
        Some(rate as f64 / 100.0)
    }

    /// The machine's traffic, over the interfaces that count, so that a byte counts once however many of them it passes.
    pub fn traffic(self, now: &Sample) -> Traffic {
        let counts = in_total(&now.network);
        let sum = |counter: fn(&NetworkUsage) -> u64| {
            let counted = now.network.iter().enumerate().filter(|(_, network)| counts(network));
            let total = counted.filter_map(|(index, _)| self.rate(now, index, counter)).reduce(|sum, rate| sum + rate);
            total.map(|total| (total * 100.0).round() / 100.0)
        };
        Traffic { received: sum(|network| network.bytes_recv), sent: sum(|network| network.bytes_sent) }
    }

    /// Samples at least this far apart yield no rate, as in the history.
    fn gap_ms(self) -> i64 {
        rollup::follows_within(rollup::gap_ms(rollup::DEFAULT_SPACING_MS), self.elapsed_ms)
    }

    /// The interface of this name, which is mostly at the same index.
    fn same(&self, index: usize, name: &str) -> Option<&NetworkUsage> {
        let networks = &self.sample.network;
        let is_it = |network: &&NetworkUsage| network.interface == name;
        networks.get(index).filter(is_it).or_else(|| networks.iter().find(is_it))
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Timestamp;

    use super::*;

    /// A sample with interfaces and what they received and sent.
    fn sample(seconds: i64, interfaces: &[(&str, u64, u64)]) -> Sample {
        let network = interfaces.iter().map(|(interface, bytes_recv, bytes_sent)| NetworkUsage {
            interface: (*interface).to_owned(),
            bytes_recv: *bytes_recv,
            bytes_sent: *bytes_sent,
            in_total: None,
        });
        Sample { timestamp: Timestamp::from_millis(seconds * 1000), network: network.collect(), ..Sample::default() }
    }

    fn traffic(before: &Sample, now: &Sample) -> (Option<f64>, Option<f64>) {
        let Traffic { received, sent } = PreviousSample { sample: before, elapsed_ms: 0 }.traffic(now);
        (received, sent)
    }

    #[test]
    fn interfaces_add_up_and_the_loopback_does_not_count() {
        let before = sample(0, &[("lo", 0, 0), ("eth0", 1_000, 2_000), ("eth1", 0, 0)]);
        let now = sample(10, &[("eth1", 50, 5), ("lo", 9_000, 9_000), ("eth0", 2_000, 2_500)]);

        assert_eq!(traffic(&before, &now), (Some(105.0), Some(50.5)));
    }

    #[test]
    fn a_byte_that_passes_several_interfaces_counts_once() {
        let names = ["eth0", "eth0.100", "docker0", "wg0"];
        let at = |seconds, bytes| sample(seconds, &names.map(|name| (name, bytes, bytes)));
        let (before, mut now) = (at(0, 0), at(10, 10_000));

        assert_eq!(traffic(&before, &now), (Some(1000.0), Some(1000.0)), "by their names");
        now.network.iter_mut().for_each(|one| one.in_total = Some(one.interface == "wg0"));
        now.network[3].bytes_recv = 500;
        assert_eq!(traffic(&before, &now), (Some(50.0), Some(1000.0)), "by the agent's word");
    }

    #[test]
    fn an_interface_that_is_new_or_was_reset_is_left_out() {
        let before = sample(0, &[("eth0", 5_000, 5_000), ("eth1", 100, 5_000)]);
        let now = sample(10, &[("eth0", 100, 100), ("eth1", 200, 6_000), ("eth2", 9_000, 9_000)]);

        assert_eq!(traffic(&before, &now), (Some(10.0), Some(100.0)));
    }

    #[test]
    fn nothing_is_known_over_a_gap_after_a_reset_and_without_interfaces() {
        let before = sample(0, &[("eth0", 100, 100)]);

        for now in [sample(16, &[("eth0", 200, 200)]), sample(5, &[("eth0", 50, 50)]), sample(5, &[("lo", 1, 1)])] {
            assert_eq!(traffic(&before, &now), (None, None), "{now:?}");
        }
    }

    #[test]
    fn a_wider_distance_is_no_gap_from_the_second_time_on() {
        let (before, now) = (sample(60, &[("eth0", 0, 0)]), sample(120, &[("eth0", 600, 60)]));

        let rate = |elapsed_ms| PreviousSample { sample: &before, elapsed_ms }.traffic(&now).received;

        assert_eq!((rate(0), rate(60_000)), (None, Some(10.0)));
    }
}

//! How often interfaces lose packets, from `/proc/net/dev`.

use std::collections::HashMap;
use std::time::Instant;

use signalbox_protocol::series::Unit;
use signalbox_protocol::traffic::is_layered;

use super::rate::Rate;
use crate::catalog::{Metric, Values};

/// The columns after an interface's name, and the metric of each.
const COLUMNS: [(usize, Metric<'_>); 4] = [
    (2, Metric::gauge("network_receive_errors", Unit::PerSecond, "Packets that an interface received broken.")),
    (
        3,
        Metric::gauge(
            "network_receive_drops",
            Unit::PerSecond,
            "Packets that were received and dropped, mostly for want of memory.",
        ),
    ),
    (10, Metric::gauge("network_transmit_errors", Unit::PerSecond, "Packets that an interface failed to send.")),
    (11, Metric::gauge("network_transmit_drops", Unit::PerSecond, "Packets that were to be sent and were dropped.")),
];
/// The number of words up to the last of these columns.
const WORDS: usize = 12;

#[derive(Debug, Default)]
pub struct NetworkErrors {
    interfaces: HashMap<String, Interface>,
    /// Counts readings, to recognise interfaces that are gone.
    reading: u64,
}

#[derive(Debug, Default)]
struct Interface {
    rates: [Rate; COLUMNS.len()],
    seen: u64,
}

impl NetworkErrors {
    /// Reads the lines of interfaces that are not built on others: those come and go with containers, and lose packets that
    /// nobody misses.
    pub fn read(&mut self, dev: &str, now: Instant) {
        self.reading += 1;
        let seen = self.reading;
        for (name, counts) in dev.lines().skip(2).filter_map(parse) {
            if is_layered(name) {
                continue;
            }
            if !self.interfaces.contains_key(name) {
                self.interfaces.insert(name.to_owned(), Interface::default());
            }
            let Some(interface) = self.interfaces.get_mut(name) else { continue };
            interface.seen = seen;
            interface.rates.iter_mut().zip(counts).for_each(|(rate, count)| rate.read(count, now));
        }
        self.interfaces.retain(|_, interface| interface.seen == seen);
    }

    pub fn values(&self, values: &mut Values<'_>) {
        for (name, interface) in &self.interfaces {
            for ((_, metric), rate) in COLUMNS.iter().zip(interface.rates) {
                if let Some(rate) = rate.per_second() {
                    values.push(*metric, Some(name), rate);
                }
            }
        }
    }
}

fn parse(line: &str) -> Option<(&str, [u64; COLUMNS.len()])> {
    // The name may contain colons (an alias), the counters never do.
    let (name, counters) = line.rsplit_once(':')?;
    let mut words = [0_u64; WORDS];
    let mut given = counters.split_ascii_whitespace();
    for word in &mut words {
        *word = given.next()?.parse().ok()?;
    }
    Some((name.trim(), COLUMNS.map(|(place, _)| words.get(place).copied().unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::collector::fixture::{named, values_of};

    const HEAD: &str = "Inter-|   Receive  |  Transmit\n face |bytes    packets errs drop\n";

    fn read(errors: &mut NetworkErrors, lines: &str, now: Instant) -> Vec<(String, f64)> {
        errors.read(&format!("{HEAD}{lines}"), now);
        values_of(|values| errors.values(values))
    }

    #[test]
    fn errors_and_drops_are_counted_by_the_second_for_each_plain_interface() {
        let (mut errors, start) = (NetworkErrors::default(), Instant::now());
        let before = "  lo: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n  eth0:152 66 5 6 0 0 0 0 41 38 7 8 0 0 0 0\n\
                      docker0: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n";
        let after = "  lo: 1 1 9 9 0 0 0 0 1 1 9 9 0 0 0 0\n  eth0:999 99 5 16 0 0 0 0 99 99 8 38 0 0 0 0\n\
                     docker0: 1 1 9 9 0 0 0 0 1 1 9 9 0 0 0 0\n";

        let first = read(&mut errors, before, start);
        let second = read(&mut errors, after, start + Duration::from_secs(5));

        assert_eq!(first, []);
        let expected = [
            ("network_receive_errors:eth0", 0.0),
            ("network_receive_drops:eth0", 2.0),
            ("network_transmit_errors:eth0", 0.2),
            ("network_transmit_drops:eth0", 6.0),
        ];
        assert_eq!(second, named(expected));
    }

    #[test]
    fn a_missing_or_truncated_interface_has_no_values() {
        let (mut errors, start) = (NetworkErrors::default(), Instant::now());
        read(&mut errors, "eth0: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n", start);

        assert_eq!(read(&mut errors, "eth0: 1 1 1 1\n", start + Duration::from_secs(5)), []);
        assert!(errors.interfaces.is_empty());
    }
}

//! How often interfaces lose packets, from `/proc/net/dev`.

use std::collections::{HashMap, HashSet};
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
/// The most names of interfaces that have series although they do not count for the machine's traffic. Each name takes ids that
/// are never used again, and the service takes 2,000 series from a connection: interfaces that come and go with containers,
/// each with a new name, would use up all of them.
const MAX_OTHERS: usize = 64;

#[derive(Debug, Default)]
pub struct NetworkErrors {
    interfaces: HashMap<String, Interface>,
    /// The names that have series without counting, also of interfaces that are gone.
    others: HashSet<String>,
    /// Counts readings, to recognise interfaces that are gone.
    reading: u64,
}

#[derive(Debug, Default)]
struct Interface {
    rates: [Rate; COLUMNS.len()],
    seen: u64,
}

impl NetworkErrors {
    /// Reads the lines of interfaces. `counted` are those that count for the machine's traffic.
    pub fn read(&mut self, dev: &str, counted: &HashSet<&str>, now: Instant) {
        self.reading += 1;
        let seen = self.reading;
        for (name, counts) in dev.lines().skip(2).filter_map(parse) {
            if !counted.contains(name) && !self.admit(name) {
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

    /// Returns whether an interface that does not count has series: not if its name says that it is built on others, because
    /// those lose packets that nobody misses. Of the rest, the first names have them.
    fn admit(&mut self, name: &str) -> bool {
        if is_layered(name) {
            return false;
        }
        self.others.contains(name) || (self.others.len() < MAX_OTHERS && self.others.insert(name.to_owned()))
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
        errors.read(&format!("{HEAD}{lines}"), &HashSet::from(["eth0"]), now);
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
    fn of_interfaces_that_come_and_go_the_first_names_have_series() {
        let (mut errors, start) = (NetworkErrors::default(), Instant::now());
        let counters = "1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0";
        let (mut measured, mut at_once) = (HashSet::<String>::new(), Vec::<String>::new());
        for number in 0..100_u32 {
            let lines =
                ["lan", &format!("1a2b3c4d5e6f{number}"), "eth0"].map(|name| format!("{name}: {counters}\n")).concat();
            read(&mut errors, &lines, start + Duration::from_secs(10 * u64::from(number)));
            let values = read(&mut errors, &lines, start + Duration::from_secs(10 * u64::from(number) + 5));
            let names = values.into_iter().filter_map(|(name, _)| Some(name.split_once(':')?.1.to_owned()));
            at_once = names.collect();
            measured.extend(at_once.clone());
        }

        assert_eq!(measured.len(), MAX_OTHERS + 1, "{measured:?}");
        assert!(["lan", "eth0"].iter().all(|name| at_once.contains(&(*name).to_owned())), "{at_once:?}");
    }

    #[test]
    fn a_missing_or_truncated_interface_has_no_values() {
        let (mut errors, start) = (NetworkErrors::default(), Instant::now());
        read(&mut errors, "eth0: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n", start);

        assert_eq!(read(&mut errors, "eth0: 1 1 1 1\n", start + Duration::from_secs(5)), []);
        assert!(errors.interfaces.is_empty());
    }
}

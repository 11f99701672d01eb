//! Bytes received and sent by each network interface since boot, from `/proc/net/dev`.

use std::collections::HashSet;
use std::io;
use std::time::Instant;

use signalbox_protocol::Sample;
use signalbox_protocol::sample::{MAX_LIST, NetworkUsage};

use super::Collector;
use super::file::KernelFile;
use super::interfaces::Interfaces;
use super::network_errors::NetworkErrors;
use crate::catalog::Values;
use crate::config::Roots;

/// The host's ends of containers' virtual cables come and go with the containers, and the bridge, which is shown, counts what
/// they carry.
const LEFT_OUT: &[&str] = &["veth", "cali"];

pub struct Network {
    dev: KernelFile,
    interfaces: Interfaces,
    rows: Vec<NetworkUsage>,
    errors: NetworkErrors,
}

impl Network {
    pub fn new(roots: &Roots) -> Self {
        let interfaces = Interfaces::new(&roots.sys);
        let dev = KernelFile::new(roots.proc.join("net/dev"));
        Self { dev, interfaces, rows: Vec::new(), errors: NetworkErrors::default() }
    }
}

impl Collector for Network {
    fn name(&self) -> &str {
        "network"
    }

    fn read(&mut self) -> io::Result<()> {
        self.rows.clear();
        let dev = self.dev.read_text()?;
        self.rows.extend(parse(dev).take(MAX_LIST));
        self.interfaces.mark(&mut self.rows);
        let in_total = self.rows.iter().filter(|row| row.in_total == Some(true));
        let counted: HashSet<&str> = in_total.map(|row| row.interface.as_str()).collect();
        self.errors.read(dev, &counted, Instant::now());
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.network.extend_from_slice(&self.rows);
    }

    fn values(&self, values: &mut Values<'_>) {
        self.errors.values(values);
    }
}

/// One row per interface, without the loopback.
pub fn parse(text: &str) -> impl Iterator<Item = NetworkUsage> {
    text.lines().skip(2).filter_map(|line| {
        // The name may contain colons (an alias), the counters never do.
        let (name, counters) = line.rsplit_once(':')?;
        let name = name.trim();
        if name == "lo" || LEFT_OUT.iter().any(|prefix| name.starts_with(prefix)) {
            return None;
        }
        let mut words = counters.split_ascii_whitespace();
        let bytes_recv = words.next()?.parse().ok()?;
        let bytes_sent = words.nth(7)?.parse().ok()?;
        Some(NetworkUsage { interface: name.to_owned(), bytes_sent, bytes_recv, in_total: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{read, roots, write};

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
  eth0:152112748    6604    0    0    0     0          0         0   412213    3809    0    0    0     0       0          0
docker0: 18446744073709551615 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
vethe3f2: 1 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
  eth1: broken
";

    #[test]
    fn counters_are_exact_and_loopback_and_container_ends_left_out() {
        let row = |interface: &str, bytes_sent, bytes_recv| NetworkUsage {
            interface: interface.to_owned(),
            bytes_sent,
            bytes_recv,
            in_total: None,
        };

        let rows: Vec<_> = parse(DEV).collect();

        assert_eq!(rows, [row("eth0", 412_213, 152_112_748), row("docker0", 7, u64::MAX)]);
    }

    #[test]
    fn errors_and_drops_of_interfaces_beside_a_physical_card_are_measured_too() {
        let dir = tempfile::tempdir().unwrap();
        let paths = roots(dir.path());
        let counters = "1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0";
        let lines = ["eth0", "lan", "mesh", "br0", "eth0.100"].map(|name| format!("{name}: {counters}\n")).concat();
        write(&paths.proc.join("net/dev"), &format!("head\nhead\n{lines}"));
        for file in ["eth0/device/vendor", "lan/bridge/stp_state", "mesh/type", "br0/type", "eth0.100/type"] {
            write(&paths.sys.join("class/net").join(file), "1\n");
        }
        let mut network = Network::new(&paths);

        read(&mut network);
        let mut values = read(&mut network);

        let counts: Vec<&str> =
            network.rows.iter().filter(|row| row.in_total == Some(true)).map(|row| row.interface.as_str()).collect();
        assert_eq!(counts, ["eth0"]);
        values.retain(|(name, _)| name.starts_with("network_receive_errors:"));
        values.sort_by(|(name, _), (other, _)| name.cmp(other));
        // The names of the other two say that they are built on others.
        let expected = ["eth0", "lan", "mesh"].map(|name| (format!("network_receive_errors:{name}"), 0.0));
        assert_eq!(values, expected);
    }
}

//! Bytes received and sent by each network interface since boot, from `/proc/net/dev`.

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
        self.errors.read(dev, Instant::now());
        self.interfaces.mark(&mut self.rows);
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
}

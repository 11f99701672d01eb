//! The number of sockets, from the kernel's own counts.
//!
//! `/proc/net/tcp` would say more, but costs the kernel a line per socket, and a proxy has 100,000 of them. These counts cost
//! the same however many there are.

use std::io;

use signalbox_protocol::series::Unit;

use super::Collector;
use super::file::KernelFile;
use crate::catalog::{Metric, Values};
use crate::config::Roots;

const TCP: Metric<'_> = Metric::gauge(
    "tcp_sockets",
    Unit::Count,
    "TCP sockets: established (with those the other side closed), time_wait, orphan, in_use, allocated.",
);
const UDP: Metric<'_> = Metric::gauge("udp_sockets", Unit::Count, "UDP sockets in use, IPv4 and IPv6.");

pub struct Sockets {
    sockstat: KernelFile,
    sockstat6: KernelFile,
    snmp: KernelFile,
    counts: Counts,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    established: Option<u64>,
    in_use: Option<u64>,
    time_wait: Option<u64>,
    orphan: Option<u64>,
    allocated: Option<u64>,
    udp: Option<u64>,
}

impl Sockets {
    pub fn new(roots: &Roots) -> Self {
        let file = |name: &str| KernelFile::new(roots.proc.join("net").join(name));
        Self { sockstat: file("sockstat"), sockstat6: file("sockstat6"), snmp: file("snmp"), counts: Counts::default() }
    }
}

impl Collector for Sockets {
    fn name(&self) -> &str {
        "sockets"
    }

    fn read(&mut self) -> io::Result<()> {
        self.counts = Counts::default();
        self.counts.add(self.sockstat.read_text()?);
        // A machine may have no IPv6.
        if let Ok(text) = self.sockstat6.read_text() {
            self.counts.add(text);
        }
        self.counts.established = self.snmp.read_text().ok().and_then(established);
        Ok(())
    }

    fn values(&self, values: &mut Values<'_>) {
        let Counts { established, in_use, time_wait, orphan, allocated, udp } = self.counts;
        let states = [
            ("established", established),
            ("time_wait", time_wait),
            ("orphan", orphan),
            ("in_use", in_use),
            ("allocated", allocated),
        ];
        for (state, count) in states {
            if let Some(count) = count {
                values.push(TCP, Some(state), count as f64);
            }
        }
        if let Some(count) = udp {
            values.push(UDP, None, count as f64);
        }
    }
}

impl Counts {
    /// Adds the counts of `sockstat` or `sockstat6`: lines of pairs after a protocol.
    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let Some((protocol, pairs)) = line.split_once(':') else { continue };
            let mut words = pairs.split_ascii_whitespace();
            while let (Some(key), Some(value)) = (words.next(), words.next()) {
                let field = match (protocol, key) {
                    ("TCP" | "TCP6", "inuse") => &mut self.in_use,
                    ("TCP", "tw") => &mut self.time_wait,
                    ("TCP", "orphan") => &mut self.orphan,
                    ("TCP", "alloc") => &mut self.allocated,
                    ("UDP" | "UDP6", "inuse") => &mut self.udp,
                    _ => continue,
                };
                if let Ok(value) = value.parse::<u64>() {
                    *field = Some(field.unwrap_or_default().saturating_add(value));
                }
            }
        }
    }
}

/// Reads `CurrEstab` of two lines, of which the first names the columns of the second.
fn established(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let place = lines.next()?.split_ascii_whitespace().position(|name| name == "CurrEstab")?;
    lines.next()?.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{named, read, roots, write};

    const SOCKSTAT: &str = "sockets: used 80\nTCP: inuse 33 orphan 1 tw 1444 alloc 35 mem 7\nUDP: inuse 2 mem 3\n\
                            UDPLITE: inuse 9\nRAW: inuse 9\nFRAG: inuse 9 memory 9\n";
    const SOCKSTAT6: &str = "TCP6: inuse 4\nUDP6: inuse 3\nUDPLITE6: inuse 9\nRAW6: inuse 9\nFRAG6: inuse 9 memory 9\n";
    const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
                        Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs\n\
                        Tcp: 1 200 120000 -1 660582 655017 5281 152485 22 35844993\nUdp: InDatagrams\nUdp: 1\n";

    #[test]
    fn both_families_are_counted_together() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("proc/net");
        write(&net.join("sockstat"), SOCKSTAT);
        let mut sockets = Sockets::new(&roots(dir.path()));

        let without = read(&mut sockets);
        write(&net.join("sockstat6"), SOCKSTAT6);
        write(&net.join("snmp"), SNMP);

        let (time_wait, orphan) = (("tcp_sockets:time_wait", 1_444.0), ("tcp_sockets:orphan", 1.0));
        let allocated = ("tcp_sockets:allocated", 35.0);
        assert_eq!(without, named([time_wait, orphan, ("tcp_sockets:in_use", 33.0), allocated, ("udp_sockets", 2.0)]));
        let established = ("tcp_sockets:established", 22.0);
        let in_use = ("tcp_sockets:in_use", 37.0);
        assert_eq!(
            read(&mut sockets),
            named([established, time_wait, orphan, in_use, allocated, ("udp_sockets", 5.0)])
        );
    }

    #[test]
    fn broken_text_yields_nothing() {
        let mut counts = Counts::default();
        counts.add("TCP inuse 3\nTCP: inuse x orphan\n");

        assert_eq!(counts, Counts::default());
        assert_eq!(established("Tcp: CurrEstab\n"), None);
        assert_eq!(established("Tcp: a b\nTcp: 1 2\n"), None);
    }
}

//! Network interfaces.

use fastrand::Rng;
use signalbox_protocol::Sample;

use super::activity::Demand;

/// A cable, and a tunnel that carries little more than its keepalives. In bytes.
#[derive(Debug, Clone, Default)]
pub struct Network {
    cable: Counters,
    tunnel: Counters,
}

#[derive(Debug, Clone, Default)]
struct Counters {
    sent: u64,
    received: u64,
}

impl Network {
    /// Counters begin again at a boot.
    pub fn boot(&mut self) {
        *self = Self::default();
    }

    pub fn step(&mut self, rng: &mut Rng, demand: Demand, sample: &mut Sample) {
        let seconds = demand.elapsed_ms as f64 / 1000.0;
        // Name lookups, time, monitoring, broadcasts of neighbours: some packets every second.
        let chatter = |rng: &mut Rng| ((2.0 + 3.0 * rng.f64()) * seconds) as u64 * rng.u64(66..180);
        self.cable.sent += chatter(rng);
        self.cable.received += chatter(rng);
        let served = 4e6 * demand.level * demand.level * seconds;
        if served > 100.0 {
            self.cable.sent += (served * (0.5 + rng.f64())) as u64;
            self.cable.received += (served * (0.05 + 0.1 * rng.f64())) as u64;
        }
        if demand.burst > 0.5 && rng.f64() < 0.5 {
            self.cable.received += (30e6 * demand.burst * rng.f64() * seconds) as u64;
        }
        if demand.is_time_for(rng, 25_000.0) {
            self.tunnel.sent += 148;
            self.tunnel.received += 92;
        }
        if demand.is_time_for(rng, 600_000.0) {
            self.tunnel.sent += rng.u64(1_000..90_000);
            self.tunnel.received += rng.u64(1_000..400_000);
        }
        for (told, counters) in sample.network.iter_mut().zip([&self.cable, &self.tunnel]) {
            told.bytes_sent = counters.sent;
            told.bytes_recv = counters.received;
        }
    }
}

//! Processor, load and heat.

use fastrand::Rng;
use signalbox_protocol::Sample;

use super::activity::Demand;
use super::hundredths;

/// Cores of every server.
pub const CORES: usize = 8;

#[derive(Debug, Clone)]
pub struct Cpu {
    cores: [Core; CORES],
    load: [f64; 3],
    package_celsius: f64,
    composite_celsius: f64,
}

#[derive(Debug, Clone, Default)]
struct Core {
    /// How much of the common work it gets; 1 is its part.
    share: f64,
    noise: f64,
}

impl Cpu {
    pub fn new(rng: &mut Rng) -> Self {
        let cores = std::array::from_fn(|_| Core { share: 0.7 + 0.6 * rng.f64(), noise: 0.0 });
        Self { cores, load: [0.0; 3], package_celsius: 38.0, composite_celsius: 34.0 + 4.0 * rng.f64() }
    }

    pub fn step(&mut self, rng: &mut Rng, demand: Demand, sample: &mut Sample) {
        // The kernel counts a hundred ticks a second; a percentage is a quotient of two such counts.
        let ticks = ((demand.elapsed_ms as f64 / 10.0).round() as i64).max(1);
        let (mut all_busy, mut all_ticks) = (0, 0);
        for (core, percent) in self.cores.iter_mut().zip(&mut sample.cpu_per_core) {
            let ticks = (ticks + rng.i64(-1..=1)).max(1);
            let busy = ((core.step(rng, demand) * ticks as f64).round() as i64).clamp(0, ticks);
            *percent = hundredths(busy as f64 * 100.0 / ticks as f64);
            all_busy += busy;
            all_ticks += ticks;
        }
        let used = all_busy as f64 / all_ticks as f64;
        sample.cpu_percent = hundredths(used * 100.0);

        // Tasks that wait in addition to the running ones, when there is more to do than the cores can.
        let waiting = if used > 0.8 { rng.f64() * CORES as f64 } else { 0.0 };
        let runnable = (used * CORES as f64 + rng.f64() - 0.5).max(0.0) + waiting;
        let minutes = [60.0, 300.0, 900.0];
        for ((load, seconds), told) in self.load.iter_mut().zip(minutes).zip(&mut sample.load_average) {
            *load += (runnable - *load) * demand.approach(seconds);
            *told = hundredths(*load);
        }

        self.package_celsius += (36.0 + 46.0 * used - self.package_celsius) * demand.approach(20.0);
        self.composite_celsius += (35.0 + 14.0 * demand.burst - self.composite_celsius) * demand.approach(600.0);
        let told = [self.package_celsius.round(), (self.composite_celsius * 2.0).round() / 2.0];
        for (sensor, celsius) in sample.temperatures.iter_mut().zip(told) {
            sensor.celsius = celsius;
        }
    }
}

impl Core {
    /// The part of the time that it was busy.
    fn step(&mut self, rng: &mut Rng, demand: Demand) -> f64 {
        if demand.is_time_for(rng, 120_000.0) {
            self.share = 0.7 + 0.6 * rng.f64();
        }
        let width = 0.004 + 0.1 * demand.level;
        self.noise = 0.7 * self.noise + width * (rng.f64() - 0.5);
        // Now and then a short task runs only on this core.
        let alone = if demand.is_time_for(rng, 90_000.0) { 0.4 * rng.f64() } else { 0.0 };
        (demand.level * self.share + self.noise + alone).clamp(0.0, 1.0)
    }
}

//! How busy a server is: a daily cycle with bursts.

use std::f64::consts::TAU;

use fastrand::Rng;
use signalbox_protocol::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// The purpose of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Idle,
    Usual,
    Busy,
}

impl Kind {
    /// Three of ten have nothing to do, two of ten much.
    pub fn of(number: usize) -> Self {
        match number % 10 {
            0 | 3 | 6 => Self::Idle,
            4 | 9 => Self::Busy,
            _ => Self::Usual,
        }
    }
}

/// The demand on a server.
#[derive(Debug, Clone)]
pub struct Activity {
    /// Of the cycle, 0 to 1.
    lowest: f64,
    highest: f64,
    /// When in the day it is highest.
    peak_ms: i64,
    bursts_a_second: f64,
    burst: f64,
    burst_left_ms: i64,
}

/// The work at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// Of all cores, 0 to 1.
    pub level: f64,
    /// How much of it comes from a burst; 0 outside of one.
    pub burst: f64,
    pub elapsed_ms: i64,
}

impl Activity {
    pub fn new(kind: Kind, rng: &mut Rng) -> Self {
        let (lowest, highest, bursts_a_second) = match kind {
            Kind::Idle => (0.002, 0.008, 1.0 / 3600.0),
            Kind::Usual => (0.03, 0.03 + 0.3 * rng.f64(), 1.0 / 400.0),
            Kind::Busy => (0.25, 0.5 + 0.3 * rng.f64(), 1.0 / 90.0),
        };
        // Most people work at the same hours.
        let peak_ms = DAY_MS / 2 + rng.i64(-3_600_000..7_200_000);
        Self { lowest, highest, peak_ms, bursts_a_second, burst: 0.0, burst_left_ms: 0 }
    }

    pub fn step(&mut self, rng: &mut Rng, at: Timestamp, elapsed_ms: i64) -> Demand {
        self.burst_left_ms -= elapsed_ms;
        if self.burst_left_ms <= 0 {
            self.burst = 0.0;
            if rng.f64() < self.bursts_a_second * elapsed_ms as f64 / 1000.0 {
                self.burst = 0.15 + 0.85 * rng.f64();
                // Many short ones, few long ones: 3 s to 6 minutes.
                self.burst_left_ms = (3000.0 * 120f64.powf(rng.f64())) as i64;
            }
        }
        let phase = (at.as_millis() - self.peak_ms).rem_euclid(DAY_MS) as f64 / DAY_MS as f64;
        let cycle = 0.5 + 0.5 * (TAU * phase).cos();
        let usual = self.lowest + (self.highest - self.lowest) * cycle * cycle;
        Demand { level: (usual + self.burst).min(1.0), burst: self.burst, elapsed_ms }
    }
}

impl Demand {
    /// Whether an event with this mean interval happens in this step.
    pub fn is_time_for(&self, rng: &mut Rng, every_ms: f64) -> bool {
        rng.f64() * every_ms < self.elapsed_ms as f64
    }

    /// How much of the way to a value that is approached exponentially was made in this step.
    pub fn approach(&self, seconds: f64) -> f64 {
        1.0 - (-(self.elapsed_ms as f64) / 1000.0 / seconds).exp()
    }
}

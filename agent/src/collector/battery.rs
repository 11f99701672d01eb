//! The charge of batteries, from `/sys/class/power_supply`.

use std::io;
use std::path::{Path, PathBuf};

use signalbox_protocol::series::Unit;

use super::Collector;
use super::file::number;
use super::temperature::{entries, text};
use crate::catalog::{Metric, Values};
use crate::config::Roots;

const CHARGE: Metric<'_> = Metric::gauge("battery_charge", Unit::Percent, "Charge of a battery of the machine.");

/// Batteries are rarely exchanged, so the directory is listed once in this many readings.
const LIST_EVERY: u32 = 60;
/// More batteries than any machine has.
const MAX_BATTERIES: usize = 16;

pub struct Battery {
    class: PathBuf,
    /// Names, and the files with the charge in percent.
    batteries: Vec<(String, PathBuf)>,
    /// The charge of each battery, in the same order.
    charges: Vec<Option<f64>>,
    readings: u32,
}

impl Battery {
    pub fn new(roots: &Roots) -> Self {
        let class = roots.sys.join("class/power_supply");
        Self { class, batteries: Vec::new(), charges: Vec::new(), readings: 0 }
    }
}

impl Collector for Battery {
    fn name(&self) -> &str {
        "battery"
    }

    fn read(&mut self) -> io::Result<()> {
        if self.readings.is_multiple_of(LIST_EVERY) {
            self.batteries = batteries(&self.class);
        }
        self.readings = self.readings.wrapping_add(1);
        self.charges.clear();
        self.charges.extend(self.batteries.iter().map(|(_, capacity)| number::<f64>(capacity)));
        Ok(())
    }

    fn values(&self, values: &mut Values<'_>) {
        for ((name, _), charge) in self.batteries.iter().zip(&self.charges) {
            if let Some(charge) = charge.filter(|charge| *charge >= 0.0) {
                // Some drivers report slightly more than 100.
                values.push(CHARGE, Some(name), charge.min(100.0));
            }
        }
    }
}

/// The machine's batteries. A mouse or a headset with a battery has the scope `Device`.
fn batteries(class: &Path) -> Vec<(String, PathBuf)> {
    let is_battery = |supply: &Path| {
        let says = |file: &str| text(&supply.join(file));
        says("type").as_deref() == Some("Battery") && says("scope").as_deref() != Some("Device")
    };
    let supplies = entries(class, "").into_iter().filter(|supply| is_battery(supply)).take(MAX_BATTERIES);
    let named = supplies.filter_map(|supply| {
        let name = supply.file_name()?.to_str()?.to_owned();
        Some((name, supply.join("capacity")))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{named, read, roots, write};

    #[test]
    fn batteries_of_the_machine_are_read_and_those_of_its_devices_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let class = dir.path().join("sys/class/power_supply");
        for (supply, kind, scope, capacity) in [
            ("BAT0", "Battery", None, "87\n"),
            ("BAT1", "Battery", Some("System\n"), "101\n"),
            ("hidpp_battery_0", "Battery", Some("Device\n"), "50\n"),
            ("AC", "Mains", None, "1\n"),
        ] {
            write(&class.join(supply).join("type"), kind);
            write(&class.join(supply).join("capacity"), capacity);
            scope.iter().for_each(|scope| write(&class.join(supply).join("scope"), scope));
        }

        let expected = [("battery_charge:BAT0", 87.0), ("battery_charge:BAT1", 100.0)];
        assert_eq!(read(&mut Battery::new(&roots(dir.path()))), named(expected));
    }

    #[test]
    fn a_machine_without_batteries_has_no_values() {
        assert_eq!(read(&mut Battery::new(&roots(Path::new("/nonexistent")))), []);
    }
}

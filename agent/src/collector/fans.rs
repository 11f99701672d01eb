//! The speed of fans, from the chips of `/sys/class/hwmon`.

use std::io;
use std::path::{Path, PathBuf};

use signalbox_protocol::series::Unit;

use super::Collector;
use super::file::number;
use super::temperature::{entries, number_equal, text};
use crate::catalog::{Metric, Values};
use crate::config::Roots;

const SPEED: Metric<'_> =
    Metric::gauge("fan_speed", Unit::Rpm, "Revolutions of a fan per minute; 0 is a fan that stands still.");

/// Fans come and go with their drivers, which is rare, so the directories are listed once in this many readings.
const LIST_EVERY: u32 = 60;
/// More fans than any machine has.
const MAX_FANS: usize = 64;

pub struct Fans {
    hwmon: PathBuf,
    /// Labels, and the files with revolutions per minute.
    fans: Vec<(String, PathBuf)>,
    /// The speed of each fan, in the same order.
    speeds: Vec<Option<f64>>,
    readings: u32,
}

impl Fans {
    pub fn new(roots: &Roots) -> Self {
        Self { hwmon: roots.sys.join("class/hwmon"), fans: Vec::new(), speeds: Vec::new(), readings: 0 }
    }
}

impl Collector for Fans {
    fn name(&self) -> &str {
        "fans"
    }

    fn read(&mut self) -> io::Result<()> {
        if self.readings.is_multiple_of(LIST_EVERY) {
            self.fans = fans(&self.hwmon);
        }
        self.readings = self.readings.wrapping_add(1);
        self.speeds.clear();
        self.speeds.extend(self.fans.iter().map(|(_, input)| number::<f64>(input)));
        Ok(())
    }

    fn values(&self, values: &mut Values<'_>) {
        for ((label, _), speed) in self.fans.iter().zip(&self.speeds) {
            if let Some(speed) = speed.filter(|speed| *speed >= 0.0) {
                values.push(SPEED, Some(label), speed);
            }
        }
    }
}

fn fans(hwmon: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for chip in entries(hwmon, "hwmon") {
        let name = text(&chip.join("name")).unwrap_or_else(|| "sensor".to_owned());
        for input in entries(&chip, "fan") {
            let file = input.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let Some(position) = file.strip_suffix("_input") else { continue };
            let label = text(&chip.join(format!("{position}_label"))).unwrap_or_else(|| position.to_owned());
            found.push((format!("{name} {label}"), input));
        }
    }
    found.truncate(MAX_FANS);
    number_equal(&mut found, |(label, _)| label);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{named, read, roots, write};

    #[test]
    fn fans_of_all_chips_are_told_apart_and_broken_ones_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let hwmon = dir.path().join("sys/class/hwmon");
        for chip in ["hwmon0", "hwmon1"] {
            write(&hwmon.join(chip).join("name"), "nct6775\n");
            write(&hwmon.join(chip).join("fan1_input"), "1234\n");
            write(&hwmon.join(chip).join("fan1_min"), "300\n");
        }
        write(&hwmon.join("hwmon0/fan1_label"), "CPU\n");
        write(&hwmon.join("hwmon0/fan2_input"), "0\n");
        write(&hwmon.join("hwmon0/fan3_input"), "no number\n");
        write(&hwmon.join("hwmon1/fan2_input"), "900\n");

        let expected = [
            ("fan_speed:nct6775 CPU", 1_234.0),
            ("fan_speed:nct6775 fan2", 0.0),
            ("fan_speed:nct6775 fan1", 1_234.0),
            ("fan_speed:nct6775 fan2 2", 900.0),
        ];
        assert_eq!(read(&mut Fans::new(&roots(dir.path()))), named(expected));
    }

    #[test]
    fn a_machine_without_fans_has_no_values() {
        assert_eq!(read(&mut Fans::new(&roots(Path::new("/nonexistent")))), []);
    }
}

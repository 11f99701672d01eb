//! Temperatures, from the sensors of `/sys/class/hwmon` and the zones of `/sys/class/thermal`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use signalbox_protocol::Sample;
use signalbox_protocol::sample::{MAX_LIST, MAX_NAME_BYTES, Temperature as Row, Unread};

use super::Collector;
use super::file::number;
use crate::config::Roots;

/// Inputs without a sensor read as -128, -61, 127 and similar values; no working sensor is outside of this range.
const PLAUSIBLE_CELSIUS: std::ops::Range<f64> = -40.0..126.0;
/// Sensors come and go with their drivers, which is rare, so the directories are listed once in this many readings.
const LIST_EVERY: u32 = 60;

/// The list of a sample that has sensors.
pub const LIST: &str = "temperatures";

pub struct Temperature {
    class: PathBuf,
    sensors: Vec<Sensor>,
    readings: u32,
    rows: Vec<Row>,
    /// Sensors that exist and return nothing: asleep, or failing.
    unread: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Sensor {
    label: String,
    /// The file with thousandths of a degree.
    input: PathBuf,
}

impl Temperature {
    pub fn new(roots: &Roots) -> Self {
        Self { class: roots.sys.join("class"), sensors: Vec::new(), readings: 0, rows: Vec::new(), unread: Vec::new() }
    }
}

impl Collector for Temperature {
    fn name(&self) -> &str {
        "temperature"
    }

    fn read(&mut self) -> io::Result<()> {
        if self.readings.is_multiple_of(LIST_EVERY) {
            self.sensors = sensors(&self.class);
        }
        self.readings = self.readings.wrapping_add(1);
        self.rows.clear();
        self.unread.clear();
        for sensor in &self.sensors {
            let Some(celsius) = number::<f64>(&sensor.input).map(|thousandths| thousandths / 1000.0) else {
                if sensor.input.exists() {
                    self.unread.push(sensor.label.clone());
                }
                continue;
            };
            if PLAUSIBLE_CELSIUS.contains(&celsius) {
                self.rows.push(Row { label: sensor.label.clone(), celsius });
            }
        }
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.temperatures.extend_from_slice(&self.rows);
        let unread = self.unread.iter().map(|label| Unread { list: LIST.to_owned(), name: Some(label.clone()) });
        sample.unread.extend(unread);
    }
}

/// Returns every sensor once: it omits a thermal zone that a chip of the same name already shows.
fn sensors(class: &Path) -> Vec<Sensor> {
    let mut found = Vec::new();
    let mut chips = Vec::new();
    for chip in entries(&class.join("hwmon"), "hwmon") {
        let name = text(&chip.join("name")).unwrap_or_else(|| "sensor".to_owned());
        for input in
            entries(&chip, "temp").into_iter().filter(|path| path.as_os_str().as_encoded_bytes().ends_with(b"_input"))
        {
            let file = input.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let position = file.trim_end_matches("_input").to_owned();
            let label = text(&chip.join(format!("{position}_label"))).unwrap_or(position);
            found.push(Sensor { label: format!("{name} {label}"), input });
        }
        chips.push(name);
    }
    for zone in entries(&class.join("thermal"), "thermal_zone") {
        let Some(kind) = text(&zone.join("type")) else { continue };
        // The kernel names the chip that it creates for a zone after the zone, with underscores instead of dashes.
        if !chips.contains(&kind) && !chips.contains(&kind.replace('-', "_")) {
            found.push(Sensor { label: kind, input: zone.join("temp") });
        }
    }
    found.truncate(MAX_LIST);
    number_equal(&mut found, |sensor| &mut sensor.label);
    found
}

/// Two disks' sensors may have the same name: the second becomes `... 2`.
pub(super) fn number_equal<T>(sensors: &mut [T], label_of: fn(&mut T) -> &mut String) {
    let labels: Vec<String> = sensors.iter_mut().map(|sensor| label_of(sensor).clone()).collect();
    for (position, sensor) in sensors.iter_mut().enumerate() {
        let label = label_of(sensor);
        let before = labels.iter().take(position).filter(|earlier| *earlier == label).count();
        if before > 0 {
            *label = format!("{label} {}", before + 1);
        }
    }
}

/// The entries of `dir` whose names begin with `prefix`, ordered by the numbers in them.
pub(super) fn entries(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.starts_with(prefix));
    names.sort_by_key(|name| (name.len(), name.clone()));
    names.into_iter().map(|name| dir.join(name)).collect()
}

/// The trimmed text of a short file.
pub(super) fn text(path: &Path) -> Option<String> {
    let mut text = fs::read_to_string(path).ok()?.trim().to_owned();
    text.truncate(text.floor_char_boundary(MAX_NAME_BYTES / 4));
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(sys: &Path) -> Vec<(String, f64)> {
        let roots = Roots { sys: sys.into(), ..Roots::default() };
        let mut collector = Temperature::new(&roots);
        let mut sample = Sample::default();
        collector.read().unwrap();
        collector.fill(&mut sample);
        sample.temperatures.into_iter().map(|row| (row.label, row.celsius)).collect()
    }

    #[test]
    fn chips_and_zones_are_read_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let class = dir.path().join("class");
        write(&class.join("hwmon/hwmon0/name"), "coretemp\n");
        write(&class.join("hwmon/hwmon0/temp1_input"), "45670\n");
        write(&class.join("hwmon/hwmon0/temp1_label"), "Package id 0\n");
        write(&class.join("hwmon/hwmon0/temp1_max"), "100000\n");
        write(&class.join("hwmon/hwmon0/temp10_input"), "41000\n");
        write(&class.join("hwmon/hwmon0/temp2_input"), "40000\n");
        write(&class.join("hwmon/hwmon1/name"), "cpu_thermal\n");
        write(&class.join("hwmon/hwmon1/temp1_input"), "50000\n");
        write(&class.join("thermal/thermal_zone0/type"), "cpu-thermal\n");
        write(&class.join("thermal/thermal_zone0/temp"), "50000\n");
        write(&class.join("thermal/thermal_zone1/type"), "acpitz\n");
        write(&class.join("thermal/thermal_zone1/temp"), "27800\n");

        let expected = [
            ("coretemp Package id 0", 45.67),
            ("coretemp temp2", 40.0),
            ("coretemp temp10", 41.0),
            ("cpu_thermal temp1", 50.0),
            ("acpitz", 27.8),
        ];
        assert_eq!(read(dir.path()), expected.map(|(label, celsius)| (label.to_owned(), celsius)));
    }

    #[test]
    fn implausible_and_unreadable_sensors_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for (position, value) in ["-128000", "127500", "no number", "", "21500"].iter().enumerate() {
            write(&dir.path().join(format!("class/hwmon/hwmon0/temp{position}_input")), value);
        }

        assert_eq!(read(dir.path()), [("sensor temp4".to_owned(), 21.5)]);
    }

    #[test]
    fn a_sensor_that_fails_is_unread_and_one_that_is_gone_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let input = |position: u32| dir.path().join(format!("class/hwmon/hwmon0/temp{position}_input"));
        (0..3).for_each(|position| write(&input(position), "21500"));
        let mut collector = Temperature::new(&Roots { sys: dir.path().into(), ..Roots::default() });
        collector.read().unwrap();

        write(&input(1), "");
        fs::remove_file(input(2)).unwrap();
        collector.read().unwrap();

        let mut sample = Sample::default();
        collector.fill(&mut sample);
        assert_eq!(sample.temperatures.len(), 1);
        assert_eq!(sample.unread, [Unread { list: "temperatures".into(), name: Some("sensor temp1".into()) }]);
    }

    #[test]
    fn sensors_of_one_name_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        for chip in ["hwmon0", "hwmon1"] {
            write(&dir.path().join(format!("class/hwmon/{chip}/name")), "nvme");
            write(&dir.path().join(format!("class/hwmon/{chip}/temp1_input")), "30000");
        }

        let labels: Vec<_> = read(dir.path()).into_iter().map(|(label, _)| label).collect();

        assert_eq!(labels, ["nvme temp1", "nvme temp1 2"]);
    }

    #[test]
    fn a_machine_without_sensors_has_no_temperatures() {
        assert_eq!(read(Path::new("/nonexistent")), []);
    }
}

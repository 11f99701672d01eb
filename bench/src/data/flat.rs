//! A sample as named numbers, for stores of single series.

use signalbox_protocol::Sample;

/// What distinguishes several series of one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label<'a> {
    None,
    Core(usize),
    /// The label's name, and its value.
    Text(&'static str, &'a str),
}

/// One series of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub metric: &'static str,
    /// A label in addition to the server's, and its value. The generator's values need no escaping.
    pub label: Option<(&'static str, String)>,
}

/// The numbers of a sample that every store takes, always in the same order.
pub fn visit<'a>(sample: &'a Sample, mut each: impl FnMut(&'static str, Label<'a>, f64)) {
    let Sample {
        cpu_percent,
        cpu_per_core,
        load_average: [load_1, load_5, load_15],
        memory_percent,
        memory_total,
        memory_used,
        swap_total,
        swap_used,
        disk_usage,
        disk_io,
        network,
        temperatures,
        uptime_seconds,
        process_count,
        ..
    } = sample;
    each("cpu_percent", Label::None, *cpu_percent);
    cpu_per_core.iter().enumerate().for_each(|(core, value)| each("cpu_core", Label::Core(core), *value));
    each("load_1", Label::None, *load_1);
    each("load_5", Label::None, *load_5);
    each("load_15", Label::None, *load_15);
    each("memory_percent", Label::None, *memory_percent);
    each("memory_total", Label::None, *memory_total as f64);
    each("memory_used", Label::None, *memory_used as f64);
    each("swap_total", Label::None, *swap_total as f64);
    each("swap_used", Label::None, *swap_used as f64);
    for disk in disk_usage {
        let label = Label::Text("path", &disk.path);
        each("disk_total", label, disk.total as f64);
        each("disk_used", label, disk.used as f64);
        each("disk_free", label, disk.free as f64);
        each("disk_percent", label, disk.percent);
    }
    for io in disk_io {
        let label = Label::Text("device", &io.device);
        each("disk_read_bytes", label, io.read_bytes as f64);
        each("disk_write_bytes", label, io.write_bytes as f64);
    }
    for net in network {
        let label = Label::Text("interface", &net.interface);
        each("network_sent_bytes", label, net.bytes_sent as f64);
        each("network_received_bytes", label, net.bytes_recv as f64);
    }
    for sensor in temperatures {
        each("temperature", Label::Text("sensor", &sensor.label), sensor.celsius);
    }
    each("uptime_seconds", Label::None, *uptime_seconds as f64);
    each("process_count", Label::None, *process_count as f64);
}

/// Appends only the numbers to `into`.
pub fn values(sample: &Sample, into: &mut Vec<f64>) {
    visit(sample, |_, _, value| into.push(value));
}

/// The names that go with [`values`].
pub fn names(sample: &Sample) -> Vec<Name> {
    let mut names = Vec::new();
    visit(sample, |metric, label, _| names.push(Name { metric, label: label.owned() }));
    names
}

impl Label<'_> {
    fn owned(self) -> Option<(&'static str, String)> {
        match self {
            Self::None => None,
            Self::Core(core) => Some(("core", core.to_string())),
            Self::Text(name, value) => Some((name, value.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Timestamp;

    use super::*;
    use crate::data::Machine;

    #[test]
    fn a_sample_has_forty_one_numbers_with_a_name_of_its_own_each() {
        let mut machine = Machine::new(1, 4, Timestamp::from_millis(1_795_000_000_000), 5000);
        let mut sample = machine.blank();
        machine.fill(&mut sample);
        let mut numbers = Vec::new();

        values(&sample, &mut numbers);
        let names = names(&sample);

        assert_eq!((numbers.len(), names.len()), (41, 41));
        assert!(names.iter().enumerate().all(|(index, name)| !names[..index].contains(name)));
        assert_eq!(numbers[0], sample.cpu_percent);
        assert_eq!(names[4], Name { metric: "cpu_core", label: Some(("core", "3".into())) });
    }
}

//! Load averages and uptime, from `/proc/loadavg` and `/proc/uptime`.

use std::io;

use signalbox_protocol::Sample;

use super::Collector;
use super::file::{KernelFile, unexpected};
use crate::config::Roots;

pub struct Load {
    loadavg: KernelFile,
    uptime: KernelFile,
    averages: [f64; 3],
    uptime_seconds: u64,
}

impl Load {
    pub fn new(roots: &Roots) -> Self {
        Self {
            loadavg: KernelFile::new(roots.proc.join("loadavg")),
            uptime: KernelFile::new(roots.proc.join("uptime")),
            averages: [0.0; 3],
            uptime_seconds: 0,
        }
    }
}

impl Collector for Load {
    fn name(&self) -> &str {
        "load"
    }

    fn read(&mut self) -> io::Result<()> {
        self.averages = parse_averages(self.loadavg.read_text()?).ok_or_else(|| unexpected("/proc/loadavg"))?;
        self.uptime_seconds = parse_uptime(self.uptime.read_text()?).ok_or_else(|| unexpected("/proc/uptime"))?;
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.load_average = self.averages;
        sample.uptime_seconds = self.uptime_seconds;
    }
}

fn parse_averages(text: &str) -> Option<[f64; 3]> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some([words.next()??, words.next()??, words.next()??])
}

/// Whole seconds.
fn parse_uptime(text: &str) -> Option<u64> {
    text.split(['.', ' ', '\n']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_the_first_three_numbers() {
        assert_eq!(parse_averages("0.15 0.92 10.69 2/320 4711\n"), Some([0.15, 0.92, 10.69]));
        assert_eq!(parse_averages("0.15 0.92\n"), None);
        assert_eq!(parse_averages("a b c\n"), None);
    }

    #[test]
    fn uptime_is_in_whole_seconds() {
        assert_eq!(parse_uptime("1053.97 2101.52\n"), Some(1053));
        assert_eq!(parse_uptime("7\n"), Some(7));
        assert_eq!(parse_uptime(""), None);
    }
}

//! The machine itself, before, between and after the scenarios of a long run: other programs' use, and its speed.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::time::sleep;

use super::seconds;
use crate::figures::{self, Line, Machine, Row};
use crate::hello;
use crate::report::{Report, in_one_line, progress, rounded};
use crate::service::ServiceOptions;
use crate::wrk;

#[derive(Debug, Args)]
pub struct MachineArgs {
    /// Seconds in which this program does nothing and looks at what others use.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub idle: Duration,
    /// Seconds for which the bare server is asked.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub duration: Duration,
    /// Connections that are kept alive during that time.
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
}

/// Clock ticks of all cores since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    busy: u64,
    stolen: u64,
}

pub async fn run(options: &ServiceOptions, args: &MachineArgs) -> anyhow::Result<()> {
    fs::create_dir_all(&options.work_dir).with_context(|| format!("cannot make {}", options.work_dir.display()))?;
    // Before this run contributes to it.
    let load = parse_load(&read("/proc/loadavg")?).context("/proc/loadavg has another shape")?;
    progress("looking at the machine");
    let before = Ticks::now()?;
    sleep(args.idle).await;
    let others = Ticks::now()?.since(before);
    let hello = hello_rate(options, args).await;
    let machine = Machine {
        cores: std::thread::available_parallelism()?.get(),
        processor: parse_processor(&read("/proc/cpuinfo")?),
        kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        load,
        busy_percent: others.percent(others.busy),
        stolen_percent: others.percent(others.stolen),
        hello: hello.as_ref().ok().copied(),
    };
    let mut report = Report::new("machine: who else uses it, and how fast it is");
    report.note("cores, processor, Linux", format!("{}, {}, {}", machine.cores, machine.processor, machine.kernel));
    report.note("load averages", machine.load.map(|average| format!("{average:.2}")).join(", "));
    let used = [machine.busy_percent, machine.stolen_percent].map(rounded);
    report.note("busy for others, and withheld by the host, %", used.join(", "));
    match hello {
        Ok(rate) => report.key_figure("hello, requests/s", Row::MachineHello, rate),
        Err(error) => {
            let why = in_one_line(&error);
            figures::append([Line::not_measured("machine", &why)])?;
            report.note("hello was not measured", why);
        }
    }
    figures::append([Line::Machine(machine)])?;
    report.finish()
}

/// Requests a second that the bare server answers.
async fn hello_rate(options: &ServiceOptions, args: &MachineArgs) -> anyhow::Result<f64> {
    let hello = hello::start(&options.work_dir, None).await?;
    // It requires no token, and `wrk` sends one.
    let result = wrk::run(&format!("http://{}/", hello.address), args.connections, args.duration, "none").await?;
    anyhow::ensure!(result.errors == 0, "{} answers were no success", result.errors);
    Ok(result.requests_per_second)
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

fn parse_load(text: &str) -> Option<[f64; 3]> {
    let mut averages = text.split_ascii_whitespace().map(str::parse::<f64>);
    Some([averages.next()?.ok()?, averages.next()?.ok()?, averages.next()?.ok()?])
}

fn parse_processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("an unnamed processor", |(_, name)| name.trim()).to_owned()
}

impl Ticks {
    fn now() -> anyhow::Result<Self> {
        Self::parse(&read("/proc/stat")?).context("/proc/stat has another shape")
    }

    /// Of the line of all cores: user, nice, system, idle, iowait, irq, softirq, steal. Guests, which come next, are
    /// counted among users.
    fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = fields.split_ascii_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let &[user, nice, system, _, _, irq, softirq, stolen] = ticks.as_slice() else { return None };
        Some(Self { all: ticks.iter().sum(), busy: user + nice + system + irq + softirq, stolen })
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            all: self.all.saturating_sub(earlier.all),
            busy: self.busy.saturating_sub(earlier.busy),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }

    fn percent(self, ticks: u64) -> f64 {
        ticks as f64 / self.all.max(1) as f64 * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_of_all_cores() {
        let stat = "cpu  10 2 8 70 4 1 3 2 50 0\ncpu0 5 1 4 35 2 0 2 1 25 0\nintr 7\n";

        let ticks = Ticks::parse(stat);

        assert_eq!(ticks, Some(Ticks { all: 100, busy: 24, stolen: 2 }));
        assert_eq!(Ticks::parse("cpu0 5 1 4 35 2 0 2 1 25 0\n"), None);
        assert_eq!(Ticks::parse("cpu  5 1 4\n"), None);
    }

    #[test]
    fn what_happened_between_two_looks_is_a_part_of_it() {
        let before = Ticks { all: 1000, busy: 500, stolen: 10 };
        let after = Ticks { all: 1200, busy: 550, stolen: 20 };

        let between = after.since(before);

        assert_eq!((between.percent(between.busy), between.percent(between.stolen)), (25.0, 5.0));
        assert_eq!(before.since(before).percent(0), 0.0);
    }

    #[test]
    fn load_and_processor_are_read() {
        assert_eq!(parse_load("0.50 1.25 2.00 1/345 6789\n"), Some([0.5, 1.25, 2.0]));
        assert_eq!(parse_load("0.50"), None);
        assert_eq!(parse_processor("processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\n"), "Some CPU @ 2.00GHz");
        assert_eq!(parse_processor("processor\t: 0\n"), "an unnamed processor");
    }
}

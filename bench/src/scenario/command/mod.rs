//! The round trip of `true`, compared with the common alternatives, in the same run and in turns.

mod contestants;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use self::contestants::{Contestants, Name};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::process::Cpu;
use crate::real_agent::{AgentOptions, RealAgent, flag};
use crate::remote::Venvs;
use crate::report::{Report, megabytes, progress};
use crate::service::ServiceOptions;
use crate::stats::Summary;

#[derive(Debug, Args)]
pub struct CommandArgs {
    #[command(flatten)]
    pub agent: AgentOptions,
    /// How often everybody has its turn.
    #[arg(long, default_value_t = 40)]
    pub turns: usize,
    /// Runs in a row in a turn; of ssh a third of it, of Salt a fifth, of Ansible a tenth.
    #[arg(long, default_value_t = 10)]
    pub runs: usize,
    /// Who is left out: some of sh, signalbox, asyncssh, controlmaster, ssh, salt, ansible, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<Name>,
    /// Where `bench/peers` has put the Python environments.
    #[arg(long, default_value = "target/bench/peers")]
    pub peers: PathBuf,
}

/// What our side used during that time.
struct Used {
    service: Cpu,
    agent: Cpu,
    service_rss: u64,
    agent_rss: u64,
}

pub async fn run(options: &ServiceOptions, args: &CommandArgs) -> anyhow::Result<()> {
    let fixture = Fixture::start(options, 1).await?;
    let enrolled = fixture.fleet.first().context("there is no server")?;
    let agent = RealAgent::start(&args.agent, &fixture, enrolled, &flag("--commands", "on")).await?;
    let mut contestants = Contestants::start(&fixture, &Venvs::new(&args.peers)?, &args.without).await;
    contestants.warm_up().await?;
    let (service_before, agent_before) = (fixture.service.cpu()?, agent.cpu()?);
    for turn in 1..=args.turns.max(1) {
        if turn % 10 == 1 {
            progress(format_args!("turn {turn} of {}", args.turns));
        }
        contestants.turn(args.runs.max(1)).await?;
    }
    let used = Used {
        service: fixture.service.cpu()?.since(service_before),
        agent: agent.cpu()?.since(agent_before),
        service_rss: fixture.service.memory()?.rss,
        agent_rss: agent.memory()?.rss,
    };
    report(contestants, &used).finish()
}

fn report(contestants: Contestants, used: &Used) -> Report {
    let mut report = Report::new("command: `true` on a host, round trips in turns");
    let Contestants { present, absent, .. } = contestants;
    let (mut ours, mut shell) = (None, None);
    for contestant in present {
        let Some(summary) = contestant.latencies.summary() else { continue };
        report.note(contestant.name.to_string(), summary);
        match contestant.name {
            Name::Signalbox => ours = Some(summary),
            Name::Shell => shell = Some(summary),
            Name::AsyncSsh | Name::ControlMaster | Name::Ssh | Name::Salt | Name::Ansible => {}
        }
    }
    if let Some(ours) = ours {
        note_ours(&mut report, ours, used);
    }
    if let (Some(ours), Some(shell)) = (ours, shell) {
        compare(&mut report, ours, shell);
    }
    for (name, reason) in absent {
        report.note(name.to_string(), format!("absent: {reason}"));
    }
    report
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Nothing can be faster than a shell, and its time shows the state of the machine.
fn compare(report: &mut Report, ours: Summary, shell: Summary) {
    let by_shell = |ours: Duration, shell: Duration| millis(ours) / millis(shell);
    report.key_figure("signalbox by `sh -c true`, p50", Row::CommandP50BySh, by_shell(ours.p50, shell.p50));
    report.key_figure("signalbox by `sh -c true`, p99", Row::CommandP99BySh, by_shell(ours.p99, shell.p99));
    report.record(Row::ShP50, millis(shell.p50));
    report.record(Row::ShP99, millis(shell.p99));
}

fn note_ours(report: &mut Report, summary: Summary, used: &Used) {
    report.key_figure("signalbox, round trip p50, ms", Row::CommandP50, millis(summary.p50));
    report.key_figure("signalbox, round trip p99, ms", Row::CommandP99, millis(summary.p99));
    let each = |cpu: Cpu| format!("{:.2}", millis(cpu.total()) / summary.count.max(1) as f64);
    report.note("service CPU of the whole run by commands, ms", each(used.service));
    report.note("agent CPU of the whole run by commands, the shells included, ms", each(used.agent));
    report.note(
        "RSS of service and agent, MB",
        format!("{:.1} and {:.1}", megabytes(used.service_rss), megabytes(used.agent_rss)),
    );
}

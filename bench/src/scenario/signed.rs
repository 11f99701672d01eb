//! What a signature costs: `true` on a host that asks for signatures and on one that does not, in turns with `ssh`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::figures::Row;
use crate::fixture::Fixture;
use crate::process::Cpu;
use crate::real_agent::{AgentOptions, RealAgent, flag};
use crate::remote::{Ours, Program, Signer, Sshd, Way};
use crate::report::{Report, megabytes, progress};
use crate::rest::Rest;
use crate::service::ServiceOptions;
use crate::stats::{Latencies, Summary};

/// The names of the servers, as the fixture makes them.
const UNSIGNED: &str = "server-00000";
const SIGNED: &str = "server-00001";

#[derive(Debug, Args)]
pub struct SignedArgs {
    #[command(flatten)]
    pub agent: AgentOptions,
    /// The program that signs and runs commands, as it is shipped.
    #[arg(long, default_value = "target/agent/signalboxctl")]
    pub signalboxctl: PathBuf,
    /// How often everybody has its turn.
    #[arg(long, default_value_t = 40)]
    pub turns: usize,
    /// Runs in a row in a turn.
    #[arg(long, default_value_t = 10)]
    pub runs: usize,
}

/// A way to run `true`, and how long it took.
struct Side {
    what: What,
    way: Way,
    latencies: Latencies,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Shell,
    Rest,
    RestSigned,
    Program,
    ProgramSigned,
    Ssh,
}

impl What {
    fn words(self) -> &'static str {
        match self {
            Self::Shell => "`sh -c true` alone (fork and exec)",
            Self::Rest => "POST /commands/{id}",
            Self::RestSigned => "POST /commands/{id}, signed before",
            Self::Program => "signalboxctl exec",
            Self::ProgramSigned => "signalboxctl exec --sign",
            Self::Ssh => "ssh with the same key",
        }
    }
}

pub async fn run(options: &ServiceOptions, args: &SignedArgs) -> anyhow::Result<()> {
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "the policy of a server that asks for signatures is root's: run as root"
    );
    let fixture = Fixture::start(options, 2).await?;
    let [unsigned, signed] = fixture.fleet.as_slice() else { anyhow::bail!("there have to be two servers") };
    let sshd = Sshd::start().await?;
    let files = tempfile::Builder::new().prefix("signalbox-signed-").tempdir()?;
    let policy = write_policy(files.path(), &sshd.key())?;

    let plain_agent = RealAgent::start(&args.agent, &fixture, unsigned, &flag("--commands", "on")).await?;
    let signed_agent = RealAgent::start(&args.agent, &fixture, signed, &flag("--policy", policy)).await?;
    let rest = |server_id, signer| Way::Ours(Ours { rest: fixture.rest.clone(), server_id, signer });
    let program = |further: &[&str]| Way::Program(signalboxctl(args, &fixture.rest, files.path(), further));
    let key = sshd.key().display().to_string();
    let signer = Signer { key: sshd.key(), server: SIGNED.to_owned() };
    // An agent that has just been started refuses what began before.
    let with_key = ["--sign", &key, "--yes", "--clock-skew", "0s", SIGNED];
    let mut sides = [
        (What::Shell, Way::Program(Program::shell(files.path().join("sh.log")))),
        (What::Rest, rest(unsigned.server_id, None)),
        (What::RestSigned, rest(signed.server_id, Some(signer))),
        (What::Program, program(&[UNSIGNED])),
        (What::ProgramSigned, program(&with_key)),
        (What::Ssh, Way::Program(sshd.anew())),
    ]
    .map(|(what, way)| Side { what, way, latencies: Latencies::default() });

    turn(&mut sides, 3).await?;
    for side in &mut sides {
        side.latencies = Latencies::default();
    }
    let (plain_before, signed_before) = (plain_agent.cpu()?, signed_agent.cpu()?);
    for number in 1..=args.turns.max(1) {
        if number % 10 == 1 {
            progress(format_args!("turn {number} of {}", args.turns));
        }
        turn(&mut sides, args.runs.max(1)).await?;
    }

    let mut report = Report::new("signed: what a signature costs, `true` in turns");
    let runs = 2 * args.turns.max(1) * args.runs.max(1);
    note_sides(&mut report, sides);
    for (name, agent, before) in [
        ("agent that runs all", &plain_agent, plain_before),
        ("agent that asks for signatures", &signed_agent, signed_before),
    ] {
        report.note(format!("{name}: CPU a command with its shell, ms"), per_run(agent.cpu()?.since(before), runs));
        report.note(format!("{name}: RSS, MB"), format!("{:.2}", megabytes(agent.memory()?.rss)));
    }
    let size = fs::metadata(&args.agent.agent).context("cannot read the agent's size")?.len();
    report.note("the agent's binary, MB", format!("{:.2}", megabytes(size)));
    report.finish()
}

/// Each makes its runs in a row, so that the caches of the previous one wear off.
async fn turn(sides: &mut [Side], runs: usize) -> anyhow::Result<()> {
    for side in sides {
        for _ in 0..runs {
            side.latencies.record(side.way.run().await.with_context(|| side.what.words())?);
        }
    }
    Ok(())
}

fn note_sides(report: &mut Report, sides: impl IntoIterator<Item = Side>) {
    let summaries: Vec<(What, Summary)> =
        sides.into_iter().filter_map(|side| Some((side.what, side.latencies.summary()?))).collect();
    for (what, summary) in &summaries {
        report.note(what.words(), summary);
    }
    let p50 = |wanted| summaries.iter().find(|(what, _)| *what == wanted).map(|(_, summary)| summary.p50.as_secs_f64());
    let mut compare = |figure: &str, row, of, by| {
        if let (Some(of), Some(by)) = (p50(of), p50(by)) {
            report.key_figure(figure, row, of / by);
        }
    };
    compare("signed by unsigned over REST, p50", Row::SignedByUnsigned, What::RestSigned, What::Rest);
    compare("signalboxctl exec --sign by ssh, p50", Row::SignedProgramBySsh, What::ProgramSigned, What::Ssh);
}

fn per_run(cpu: Cpu, runs: usize) -> String {
    format!("{:.2}", cpu.total().as_secs_f64() * 1e3 / runs as f64)
}

/// What the owner of the server writes, and the key that may sign.
fn write_policy(folder: &Path, key: &Path) -> anyhow::Result<PathBuf> {
    let public = fs::read_to_string(key.with_extension("pub")).context("cannot read the public key")?;
    let (signers, policy) = (folder.join("allowed_signers"), folder.join("policy.toml"));
    fs::write(&signers, format!("bench@example.org {public}"))?;
    let signers = signers.display();
    fs::write(&policy, format!("commands = \"signed\"\nname = \"{SIGNED}\"\nsigners = \"{signers}\"\n"))?;
    Ok(policy)
}

fn signalboxctl(args: &SignedArgs, rest: &Rest, folder: &Path, further: &[&str]) -> Program {
    let arguments = ["exec"].iter().chain(further).chain(&["--", "true"]).map(OsString::from).collect();
    let environment = vec![
        ("SIGNALBOX_URL", rest.root().into()),
        ("SIGNALBOX_TOKEN", rest.token().into()),
        ("XDG_CONFIG_HOME", folder.into()),
    ];
    Program { program: args.signalboxctl.clone(), arguments, environment, log: folder.join("signalboxctl.log") }
}

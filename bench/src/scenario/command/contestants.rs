//! The contestants of `command`, and how often each has its turn.

use std::fmt;
use std::str::FromStr;

use anyhow::Context;

use crate::fixture::Fixture;
use crate::remote::{Ours, Program, Salt, Sshd, Venvs, Way, ansible};
use crate::report::progress;
use crate::stats::Latencies;

/// A way to run `true` on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// A shell of the generator's own, which nothing can beat.
    Shell,
    Signalbox,
    AsyncSsh,
    ControlMaster,
    Ssh,
    Salt,
    Ansible,
}

/// In the order of their turns.
pub const ALL: [Name; 7] =
    [Name::Shell, Name::Signalbox, Name::AsyncSsh, Name::ControlMaster, Name::Ssh, Name::Salt, Name::Ansible];

/// One that takes part.
#[derive(Debug)]
pub struct Contestant {
    pub name: Name,
    pub way: Way,
    pub latencies: Latencies,
}

/// The available contestants, and why the others are missing.
#[derive(Debug, Default)]
pub struct Contestants {
    pub present: Vec<Contestant>,
    pub absent: Vec<(Name, String)>,
    /// Kept for as long as its clients run.
    _sshd: Option<Sshd>,
}

impl Name {
    /// On the command line.
    fn short(self) -> &'static str {
        match self {
            Self::Shell => "sh",
            Self::Signalbox => "signalbox",
            Self::AsyncSsh => "asyncssh",
            Self::ControlMaster => "controlmaster",
            Self::Ssh => "ssh",
            Self::Salt => "salt",
            Self::Ansible => "ansible",
        }
    }

    /// How many of `runs` it makes a turn: the slow ones fewer, or a run would take all day.
    pub fn runs(self, runs: usize) -> usize {
        let one_of = match self {
            Self::Shell | Self::Signalbox | Self::AsyncSsh | Self::ControlMaster => 1,
            Self::Ssh => 3,
            Self::Salt => 5,
            Self::Ansible => 10,
        };
        runs.div_ceil(one_of)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shell => "`sh -c true` alone (fork and exec)",
            Self::Signalbox => "signalbox, POST /commands/{id}",
            Self::AsyncSsh => "a channel on a standing SSH connection (asyncssh)",
            Self::ControlMaster => "ssh with ControlMaster",
            Self::Ssh => "ssh",
            Self::Salt => "Salt cmd.run (LocalClient)",
            Self::Ansible => "Ansible ad hoc (command)",
        })
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<&str> = ALL.iter().map(|name| name.short()).collect();
        let found = ALL.into_iter().find(|name| name.short() == text);
        found.ok_or_else(|| format!("none of {}", names.join(", ")))
    }
}

impl Contestants {
    /// Starts all except `without`.
    pub async fn start(fixture: &Fixture, venvs: &Venvs, without: &[Name]) -> Self {
        let mut contestants = Self::default();
        let mut sshd = None;
        for name in ALL {
            if without.contains(&name) {
                contestants.absent.push((name, "not wanted".to_owned()));
                continue;
            }
            progress(format_args!("starting {}", name.short()));
            match start(name, fixture, venvs, &mut sshd).await {
                Ok(way) => contestants.present.push(Contestant { name, way, latencies: Latencies::default() }),
                Err(error) => {
                    progress(format_args!("{}: {error:#}", name.short()));
                    contestants.absent.push((name, error.root_cause().to_string()));
                }
            }
        }
        contestants._sshd = sshd;
        contestants
    }

    /// One turn: each makes its runs in a row, so that the caches of the previous one wear off.
    pub async fn turn(&mut self, runs: usize) -> anyhow::Result<()> {
        for Contestant { name, way, latencies } in &mut self.present {
            for _ in 0..name.runs(runs) {
                latencies.record(way.run().await.with_context(|| name.to_string())?);
            }
        }
        Ok(())
    }

    /// Runs all a few times without measuring.
    pub async fn warm_up(&mut self) -> anyhow::Result<()> {
        const RUNS: usize = 3;

        self.turn(RUNS).await?;
        for contestant in &mut self.present {
            contestant.latencies = Latencies::default();
        }
        Ok(())
    }
}

async fn start(name: Name, fixture: &Fixture, venvs: &Venvs, sshd: &mut Option<Sshd>) -> anyhow::Result<Way> {
    let work_dir = fixture.service.work_dir();
    match name {
        Name::Shell => Ok(Way::Program(Program::shell(work_dir.join("sh.log")))),
        Name::Signalbox => {
            let server_id = fixture.fleet.first().context("there is no server")?.server_id;
            Ok(Way::Ours(Ours { rest: fixture.rest.clone(), server_id, signer: None }))
        }
        Name::AsyncSsh => Ok(Way::Worker(Box::new(running(sshd).await?.asyncssh(venvs).await?))),
        Name::ControlMaster => Ok(Way::Program(running(sshd).await?.through_master())),
        Name::Ssh => Ok(Way::Program(running(sshd).await?.anew())),
        Name::Ansible => Ok(Way::Program(ansible(venvs, running(sshd).await?)?)),
        Name::Salt => Ok(Way::Salt(Box::new(Salt::start(venvs, &user()).await?))),
    }
}

/// The SSH server, which is started for the first one that needs it.
async fn running(sshd: &mut Option<Sshd>) -> anyhow::Result<&Sshd> {
    if sshd.is_none() {
        *sshd = Some(Sshd::start().await?);
    }
    sshd.as_ref().context("there is no SSH server")
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_ones_run_less_often_and_never_not_at_all() {
        assert_eq!(ALL.map(|name| name.runs(10)), [10, 10, 10, 10, 4, 2, 1]);
        assert_eq!(ALL.map(|name| name.runs(1)), [1; 7]);
    }

    #[test]
    fn a_contestant_is_named_by_a_word() {
        assert_eq!("salt".parse(), Ok(Name::Salt));
        assert!("pepper".parse::<Name>().unwrap_err().contains("controlmaster"));
    }
}

//! Wrong passwords on many connections, and users who sign in during that time.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{AbuseArgs, STRANGER};
use crate::fixture::Fixture;
use crate::probe::{self, Probe, Question};
use crate::report::{Aim, Report, progress};
use crate::rest::{Rest, USERNAME};
use crate::stop::StopSource;

const LOGIN_EVERY: Duration = Duration::from_millis(500);
/// The slowest login, in seconds.
const SLOWEST: f64 = 2.0;

/// Whose passwords are guessed, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Guessed {
    from: Ipv4Addr,
    is_own_name: bool,
}

impl Guessed {
    /// The last is the hardest: only the connection distinguishes both.
    pub const ALL: [Self; 4] = [
        Self { from: STRANGER, is_own_name: false },
        Self { from: STRANGER, is_own_name: true },
        Self { from: Ipv4Addr::LOCALHOST, is_own_name: false },
        Self { from: Ipv4Addr::LOCALHOST, is_own_name: true },
    ];

    fn describe(self) -> String {
        let address = if self.from == STRANGER { "another address" } else { "the same address" };
        let name = if self.is_own_name { "the account that people sign in to" } else { "random accounts" };
        format!("from {address}, of {name}")
    }
}

pub async fn attack(fixture: &Fixture, args: &AbuseArgs, guessed: Guessed) -> anyhow::Result<Report> {
    progress("people sign in");
    let calm = sign_in(&fixture.rest, args.span).await?;
    progress(format_args!("people sign in beside {} connections of wrong passwords", args.guessers));
    let mut guessers = JoinSet::new();
    for number in 0..args.guessers {
        let guesser = reqwest::Client::builder().local_address(IpAddr::from(guessed.from)).build()?;
        guessers.spawn(guess(guesser, fixture.rest.url("/auth/login"), guessed.is_own_name, number));
    }
    sleep(Duration::from_secs(1)).await;
    let flooded = sign_in(&fixture.rest, args.span).await?;
    drop(guessers);

    let title = format!("abuse: wrong passwords on {} connections, {}", args.guessers, guessed.describe());
    let mut report = Report::new(title);
    for (name, probes, aim) in [("without", &calm, None), ("beside them", &flooded, Some(Aim::AtMost(SLOWEST)))] {
        let (summary, failures) = probe::summarize(probes.iter());
        if let Some(summary) = summary {
            report.note(format!("login {name}"), summary);
            if let Some(aim) = aim {
                report.figure(format!("slowest login {name}, s"), summary.max.as_secs_f64(), aim);
            }
        }
        report.must_be_zero(format!("logins {name} that failed"), failures);
    }
    Ok(report)
}

/// Signs in again and again.
async fn sign_in(rest: &Rest, span: Duration) -> anyhow::Result<Vec<Probe>> {
    let (source, stop) = StopSource::new();
    let probes = probe::spawn(rest.clone(), Question::Login, LOGIN_EVERY, stop);
    sleep(span).await;
    source.stop();
    Ok(probes.await?)
}

/// Tries wrong passwords until it is dropped.
async fn guess(client: reqwest::Client, url: String, is_own_name: bool, number: usize) {
    for attempt in 0_u64.. {
        let name = if is_own_name { USERNAME.to_owned() } else { format!("nobody-{number}-{attempt}") };
        let password = format!("wrong password {attempt}");
        // Whatever is answered, the next one follows.
        client.post(&url).form(&[("username", name), ("password", password)]).send().await.ok();
    }
}

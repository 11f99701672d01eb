//! All settings of an agent, each with a sensible default.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::agent::MAX_RECORDING_BYTES;

use crate::policy::Policy;
use crate::proxy::Proxy;
use crate::signed::Demands;
use crate::updates;
use crate::url::{ServiceUrl, UrlError};

/// The fastest and the slowest useful sampling: below, the reading itself would show in the figures.
pub const INTERVAL_RANGE_SECONDS: std::ops::RangeInclusive<f64> = 0.5..=3600.0;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of one agent. Start from [`Config::new`] and change what differs.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub url: ServiceUrl,
    pub key: ApiKey,
    /// How often a sample is taken, until the service asks for another interval.
    pub interval: Interval,
    pub live: LiveSamples,
    /// Where unacknowledged samples are stored. None keeps them in memory, within [`BufferLimits::memory_bytes`].
    pub state_dir: Option<PathBuf>,
    /// The proxy on the way to the service.
    pub proxy: Option<Proxy>,
    /// The only trusted certificate authority, in PEM. None trusts those of the system.
    pub ca_file: Option<PathBuf>,
    pub policy: Policy,
    /// What the policy's `signed` demands. Without it nothing that needs a signature is permitted.
    pub demands: Option<Arc<Demands>>,
    /// What the policy's `updates` permits, and the build that runs.
    pub updates: updates::Settings,
    pub roots: Roots,
    pub limits: BufferLimits,
    pub recordings: RecordingLimits,
    pub timing: Timing,
}

impl Config {
    /// An agent that monitors this machine and keeps its samples in memory.
    pub fn new(url: &str, key: &str) -> Result<Self, ConfigError> {
        Ok(Self { url: url.parse()?, key: ApiKey::new(key)?, ..Self::default() })
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("--url: {0}")]
    Url(#[from] UrlError),
    #[error("the agent's key is empty")]
    EmptyKey,
    #[error("the agent's key has blanks or control characters in it")]
    MalformedKey,
    #[error("--interval: {0} is not between 0.5 and 3600 seconds")]
    Interval(f64),
}

/// The agent's secret. Its `Debug` hides it, so that it never reaches a log.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Accepts the key with white space around it, as a file has it.
    pub fn new(text: &str) -> Result<Self, ConfigError> {
        let key = text.trim();
        if key.is_empty() {
            return Err(ConfigError::EmptyKey);
        }
        if key.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(ConfigError::MalformedKey);
        }
        Ok(Self(key.to_owned()))
    }

    /// The secret itself, only for the `auth` message.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

/// The time between two samples, within [`INTERVAL_RANGE_SECONDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(Duration);

impl Interval {
    pub fn from_seconds(seconds: f64) -> Result<Self, ConfigError> {
        if INTERVAL_RANGE_SECONDS.contains(&seconds) {
            Ok(Self(Duration::from_secs_f64(seconds)))
        } else {
            Err(ConfigError::Interval(seconds))
        }
    }

    /// Any duration, for agents with synthetic samples.
    pub fn of(duration: Duration) -> Self {
        Self(duration)
    }

    pub fn duration(self) -> Duration {
        self.0
    }

    /// How many samples 24 hours have, rounded up.
    pub fn samples_of_a_day(self) -> u64 {
        let samples = DAY.as_nanos().div_ceil(self.0.as_nanos().max(1));
        u64::try_from(samples).unwrap_or(u64::MAX)
    }
}

impl Default for Interval {
    fn default() -> Self {
        Self(Duration::from_secs(5))
    }
}

/// Whether live samples are sent while somebody watches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveSamples {
    Off,
    /// At this interval or a longer one.
    Every(Duration),
}

impl LiveSamples {
    /// The shortest interval; none where there are no live samples, because they are off or would not be more than the others.
    pub fn shortest(self, interval: Interval) -> Option<Duration> {
        match self {
            Self::Every(shortest) if shortest < interval.duration() => Some(shortest),
            Self::Every(_) | Self::Off => None,
        }
    }
}

impl Default for LiveSamples {
    fn default() -> Self {
        Self::Every(Duration::from_secs(1))
    }
}

/// Where the kernel and the distribution describe the machine; a test uses a directory of its own.
#[derive(Debug, Clone)]
pub struct Roots {
    pub proc: PathBuf,
    pub sys: PathBuf,
    pub etc: PathBuf,
    pub var: PathBuf,
    pub run: PathBuf,
    /// The directory of the distribution's programs.
    pub bin: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            sys: "/sys".into(),
            etc: "/etc".into(),
            var: "/var".into(),
            run: "/run".into(),
            bin: "/usr/bin".into(),
        }
    }
}

/// The limits of the buffer of unacknowledged samples.
#[derive(Debug, Clone, Copy)]
pub struct BufferLimits {
    /// A file of this size is followed by the next one; the unit in which space is freed.
    pub segment_bytes: u64,
    /// The most bytes of all files together. 24 hours at 5 s fit with up to 3.8 KiB a sample; an ordinary one has 1.1 KiB.
    pub disk_bytes: u64,
    /// Beyond `disk_bytes` this many samples are still stored: 24 hours at 5 s, whatever their size. A shorter interval raises
    /// it to its own 24 hours, and a longer backlog that an earlier run stored beyond `disk_bytes` to its length ...
    pub disk_samples: u64,
    /// ... but never more bytes than this.
    pub disk_bytes_at_most: u64,
    /// How long a file that cannot be read is tried again. Then it is skipped, so that the samples after it are sent.
    pub read_again_for: Duration,
    /// How soon a directory that could not be used is tried again.
    pub open_again_after: Duration,
    /// Without a writable directory: more than an hour at 5 s, so that the agent stays small.
    pub memory_bytes: usize,
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 20,
            disk_bytes: 64 << 20,
            disk_samples: 17_280,
            disk_bytes_at_most: 512 << 20,
            read_again_for: Duration::from_secs(600),
            open_again_after: Duration::from_secs(60),
            memory_bytes: 1 << 20,
        }
    }
}

/// The limits of the recordings of terminals.
#[derive(Debug, Clone, Copy)]
pub struct RecordingLimits {
    /// A terminal whose recording reaches this ends: a working day of a busy shell is some megabytes.
    pub one_bytes: u64,
    /// The most bytes of all recordings together. The oldest are removed.
    pub all_bytes: u64,
    /// The most recordings, because the agent holds a line about each in memory.
    pub count: usize,
}

impl Default for RecordingLimits {
    fn default() -> Self {
        Self { one_bytes: MAX_RECORDING_BYTES, all_bytes: 256 << 20, count: 1_000 }
    }
}

/// The agent's timeouts. Flags cannot set them; tests shorten them.
#[derive(Debug, Clone)]
pub struct Timing {
    /// For each of: name lookup and TCP connect, TLS, the WebSocket upgrade, the answer to `auth`.
    pub handshake_step: Duration,
    /// The service pings every 20 s; three missed pings mean that it, or the network to it, is gone.
    pub silence: Duration,
    /// After a service that responds has stored nothing for this long, the agent asks whether another connection would do
    /// better.
    pub unacknowledged: Duration,
    /// How often it asks from then on, and over what time agents that lost the same database spread the first question.
    pub doubt: Duration,
    /// Only a connection that lasted this long resets the backoff; one that fails at once must not be retried fast. It also proves
    /// that a build that was taken works.
    pub stable: Duration,
    pub backoff_first: Duration,
    pub backoff_most: Duration,
    /// How soon agents return to a service that said it restarts or is overloaded: the widest first window.
    pub backoff_busy: Duration,
    /// The time before an agent reconnects after another one with a key of the same server took over.
    pub replaced: Duration,
    /// For the last messages and the close handshake, so that a stop takes less than 2 s.
    pub closing: Duration,
    /// The most time of one collector before the sample is sent without it.
    pub collector: Duration,
    /// How often the agent checks for a suspend while nothing else happens.
    pub watch: Duration,
    /// For the whole download of a build: 6 kB/s for 10 MB, as the service grants it.
    pub download: Duration,
    /// How often the agent checks whether it is used, when it has a build to try.
    pub update_idle: Duration,
    /// The first pause after a build could not be fetched or tried, and the longest: it doubles each time.
    pub update_pause: Duration,
    pub update_pause_most: Duration,
    /// The time of a build on trial until it works.
    pub trial: Duration,
    /// How long a build on trial has to stay connected.
    pub trial_settle: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            handshake_step: Duration::from_secs(10),
            silence: Duration::from_secs(60),
            unacknowledged: Duration::from_secs(300),
            doubt: Duration::from_secs(60),
            stable: Duration::from_secs(30),
            backoff_first: Duration::from_millis(500),
            backoff_most: Duration::from_secs(60),
            backoff_busy: Duration::from_secs(5),
            replaced: Duration::from_secs(3600),
            closing: Duration::from_millis(1200),
            collector: Duration::from_secs(1),
            watch: Duration::from_secs(15),
            download: Duration::from_secs(30 * 60),
            update_idle: Duration::from_secs(1),
            update_pause: Duration::from_secs(60),
            update_pause_most: Duration::from_secs(60 * 60),
            trial: Duration::from_secs(60),
            trial_settle: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_with_the_newline_of_its_file() {
        assert_eq!(ApiKey::new("sbk_1\n").ok(), Some(ApiKey("sbk_1".to_owned())));
    }

    #[test]
    fn a_key_that_cannot_be_one_is_refused() {
        for text in ["", " \n", "two keys", "a\u{0}b"] {
            assert!(ApiKey::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_key_never_shows_in_debug_output() {
        let config = Config::new("http://localhost", "sbk_secret").unwrap();

        assert!(!format!("{config:?}").contains("sbk_secret"));
    }

    #[test]
    fn live_samples_are_more_than_the_others_or_there_are_none() {
        let (second, usual) = (Duration::from_secs(1), Interval::default());

        assert_eq!(LiveSamples::default().shortest(usual), Some(second));
        assert_eq!(LiveSamples::default().shortest(Interval::of(second)), None);
        assert_eq!(LiveSamples::Off.shortest(usual), None);
    }

    #[test]
    fn a_day_has_as_many_samples_as_the_interval_yields() {
        for (seconds, samples) in [(0.5, 172_800), (1.0, 86_400), (5.0, 17_280), (7.0, 12_343), (3600.0, 24)] {
            assert_eq!(Interval::from_seconds(seconds).unwrap().samples_of_a_day(), samples, "{seconds}");
        }
    }

    #[test]
    fn the_interval_has_both_bounds() {
        assert_eq!(Interval::from_seconds(0.5).unwrap().duration(), Duration::from_millis(500));
        assert_eq!(Interval::from_seconds(3600.0).unwrap().duration(), Duration::from_secs(3600));
        for seconds in [0.49, 3600.1, f64::NAN, f64::INFINITY, -5.0] {
            assert!(Interval::from_seconds(seconds).is_err(), "{seconds}");
        }
    }
}

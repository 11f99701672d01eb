//! How much memory the service may use, and how much one account may have.

use clap::Args;

use super::heading::LIMITS;
use super::values::whole;
use super::{MAX_FREE_MEGABYTES, MEGABYTE};
use crate::config::Quotas;

/// How much memory the service may use, and how much one account may have. Lowering a quota deletes nothing.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Memory that the service may use, such as 512M or 2G. Above it, expensive reads wait and agents catch up more slowly
    /// [default: a quarter of the memory of the machine or its cgroup, at least 128M]
    #[arg(long, env = "SIGNALBOX_MEMORY_BUDGET", value_name = "SIZE", help_heading = LIMITS, value_parser = size)]
    pub memory_budget: Option<u64>,
    /// Maximum number of servers of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_SERVERS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().servers, value_parser = quota())]
    pub quota_servers: u64,
    /// Maximum number of API keys of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_API_KEYS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().api_keys, value_parser = quota())]
    pub quota_api_keys: u64,
    /// Maximum number of thresholds of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_THRESHOLDS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().thresholds, value_parser = quota())]
    pub quota_thresholds: u64,
    /// Maximum number of evaluations of one account: its enabled thresholds times the servers of each
    #[arg(long, env = "SIGNALBOX_QUOTA_EVALUATIONS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().evaluations, value_parser = quota())]
    pub quota_evaluations: u64,
    /// Maximum number of silences of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_SILENCES", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().silences, value_parser = quota())]
    pub quota_silences: u64,
    /// Maximum number of notification channels of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_CHANNELS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().channels, value_parser = quota())]
    pub quota_channels: u64,
    /// Maximum number of saved views and dashboards of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_VIEWS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().views, value_parser = quota())]
    pub quota_views: u64,
    /// Maximum number of grants that one account gives
    #[arg(long, env = "SIGNALBOX_QUOTA_GRANTS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().grants, value_parser = quota())]
    pub quota_grants: u64,
    /// Maximum number of teams that one account creates
    #[arg(long, env = "SIGNALBOX_QUOTA_TEAMS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().teams, value_parser = quota())]
    pub quota_teams: u64,
    /// Maximum number of tokens for programs of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_TOKENS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().tokens, value_parser = quota())]
    pub quota_tokens: u64,
    /// Maximum number of enrolments of one account
    #[arg(long, env = "SIGNALBOX_QUOTA_ENROLMENTS", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().enrolments, value_parser = quota())]
    pub quota_enrolments: u64,
    /// Maximum number of batches of one account that run at the same time
    #[arg(long, env = "SIGNALBOX_QUOTA_BATCHES", value_name = "N", help_heading = LIMITS,
          default_value_t = Quotas::default().batches, value_parser = quota())]
    pub quota_batches: u64,
    /// Megabytes of stored commands and output of one account. Above it, the service deletes the oldest output first, and
    /// refuses new commands while unfinished ones fill it
    #[arg(long, env = "SIGNALBOX_QUOTA_COMMAND_STORAGE", value_name = "MB", help_heading = LIMITS,
          default_value_t = Quotas::default().command_bytes / MEGABYTE, value_parser = whole::<u64>(1, MAX_FREE_MEGABYTES))]
    pub quota_command_storage: u64,
}

impl LimitArgs {
    pub fn quotas(&self) -> Quotas {
        Quotas {
            servers: self.quota_servers,
            api_keys: self.quota_api_keys,
            thresholds: self.quota_thresholds,
            evaluations: self.quota_evaluations,
            silences: self.quota_silences,
            channels: self.quota_channels,
            views: self.quota_views,
            grants: self.quota_grants,
            teams: self.quota_teams,
            tokens: self.quota_tokens,
            enrolments: self.quota_enrolments,
            batches: self.quota_batches,
            command_bytes: self.quota_command_storage.saturating_mul(MEGABYTE),
        }
    }
}

/// How many of something an account may have.
fn quota() -> impl Fn(&str) -> Result<u64, String> + Clone {
    whole(1, 1_000_000_000)
}

/// The least memory that may be set: an idle service takes about half as much.
const LEAST_MEMORY: u64 = 64 * MEGABYTE;

/// Bytes, or with a suffix: `65536K`, `512M`, `2G`.
fn size(text: &str) -> Result<u64, &'static str> {
    const WRONG: &str = "a size is a number of at least 64M, such as 512M or 2G";
    let text = text.trim_end_matches(['B', 'b']).trim_end_matches('i');
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits) {
        Some("") => 1,
        Some("K" | "k") => 1024,
        Some("M" | "m") => MEGABYTE,
        Some("G" | "g") => 1024 * MEGABYTE,
        Some("T" | "t") => 1024 * 1024 * MEGABYTE,
        _ => return Err(WRONG),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|bytes| *bytes >= LEAST_MEMORY).ok_or(WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("512M", 512 * MEGABYTE), ("2GiB", 2048 * MEGABYTE), ("67108864", 64 * MEGABYTE)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "1", "-512M", "512X", "1.5G", "63M", "99999999999G", "512 M"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}

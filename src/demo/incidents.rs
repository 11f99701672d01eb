//! When something goes wrong on the simulated servers, and what it does to their numbers. Pure.
//!
//! Times are hours since the demo began, so they are negative in the past.

use super::cast::{Incident, Machine, Role};

/// Hours from one end of the leaking process to the next.
pub const LEAK_HOURS: f64 = 62.0;
/// The last time that the kernel ended it.
pub const LAST_OOM: f64 = -20.0;
/// Memory after a restart, and by how much it grows, in percent.
const LEAK_BASE: f64 = 38.0;
const LEAK_GROWTH: f64 = 58.5;
const LEAK_BEND: f64 = 1.6;

/// The disk fills up between these hours, from one percentage to another.
const FULL_FROM: f64 = -290.0;
const FULL_AT: f64 = -2.0;
const FULL_BASE: f64 = 58.0;
const FULL_GROWTH: f64 = 38.2;

/// The release with errors, how many hours they lasted, and how many hours lie between two releases.
pub const DEPLOYED: f64 = -26.4;
pub const ERRORS_LASTED: f64 = 0.15;
pub const DEPLOY_EVERY: f64 = 72.0;

/// Since when the drive is warm, and how quickly it became so.
const HOT_FROM: f64 = -3.0;
const HOT_GROWTH_PER_HOUR: f64 = 8.0;
const HOT_MOST: f64 = 12.5;
const DRIVE_CELSIUS: f64 = 40.5;

/// When the agent that is offline was last heard.
pub const OFFLINE_SINCE: f64 = -21.0;

/// The container that dies: how long one of its lives is, and how much of it it runs.
pub const FLAP_MS: i64 = 150_000;
pub const FLAP_UP_MS: i64 = 128_000;

/// The nightly backup: when it starts, in seconds after midnight, and how long it takes.
pub const BACKUP_AT: f64 = 3.0 * 3_600.0;
pub const BACKUP_LASTS: f64 = 1_440.0;
const DAY: f64 = 86_400.0;

/// Used memory of the leaking server, in percent.
pub fn leaked_percent(hours: f64) -> f64 {
    let life = (hours - LAST_OOM).rem_euclid(LEAK_HOURS) / LEAK_HOURS;
    LEAK_BASE + LEAK_GROWTH * life.powf(LEAK_BEND)
}

/// The hour before the last end of the leaking process at which it had this much memory, in percent.
pub fn leak_crossed(percent: f64) -> f64 {
    let life = ((percent - LEAK_BASE) / LEAK_GROWTH).powf(1.0 / LEAK_BEND);
    LAST_OOM - LEAK_HOURS * (1.0 - life)
}

/// How full the disk is, in percent.
pub fn filled_percent(hours: f64) -> f64 {
    let share = ((hours - FULL_FROM) / (FULL_AT - FULL_FROM)).clamp(0.0, 1.0);
    FULL_BASE + FULL_GROWTH * share
}

/// The hour at which the disk was this full, in percent.
pub fn filled_at(percent: f64) -> f64 {
    FULL_FROM + (percent - FULL_BASE) / FULL_GROWTH * (FULL_AT - FULL_FROM)
}

/// The temperature of the drive, in degrees Celsius.
pub fn drive_celsius(hours: f64) -> f64 {
    DRIVE_CELSIUS + ((hours - HOT_FROM) * HOT_GROWTH_PER_HOUR).clamp(0.0, HOT_MOST)
}

/// The hour at which the drive had this temperature.
pub fn drive_crossed(celsius: f64) -> f64 {
    HOT_FROM + (celsius - DRIVE_CELSIUS) / HOT_GROWTH_PER_HOUR
}

/// Whether the release answers with errors.
pub fn has_errors(machine: &Machine, hours: f64) -> bool {
    machine.incident == Incident::Deploy && (DEPLOYED..DEPLOYED + ERRORS_LASTED).contains(&hours)
}

/// Whether a release is being rolled out: it takes some minutes and some processor time.
pub fn is_deploying(machine: &Machine, hours: f64) -> bool {
    let since = (hours - DEPLOYED).rem_euclid(DEPLOY_EVERY);
    matches!(machine.role, Role::Web | Role::App) && machine.incident != Incident::Offline && since < 0.12
}

/// Whether the nightly backup runs at this time, in seconds since 1970.
pub fn is_backing_up(seconds: f64) -> bool {
    (BACKUP_AT..BACKUP_AT + BACKUP_LASTS).contains(&seconds.rem_euclid(DAY))
}

/// How many seconds all nightly backups up to this time have taken.
pub fn backup_seconds(seconds: f64) -> f64 {
    let (nights, tonight) = ((seconds / DAY).floor(), seconds.rem_euclid(DAY));
    nights * BACKUP_LASTS + (tonight - BACKUP_AT).clamp(0.0, BACKUP_LASTS)
}

/// Whether a container that dies every few minutes runs at this time, in milliseconds since 1970.
pub fn flapping_runs(at_ms: i64) -> bool {
    at_ms.rem_euclid(FLAP_MS) < FLAP_UP_MS
}

/// When its present life began.
pub fn flapping_since(at_ms: i64) -> i64 {
    at_ms.div_euclid(FLAP_MS) * FLAP_MS
}

/// Whether the agent of this server is heard.
pub fn is_heard(machine: &Machine, hours: f64) -> bool {
    machine.incident != Incident::Offline || hours < OFFLINE_SINCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leak_ends_when_the_kernel_ends_the_process() {
        assert!(leaked_percent(LAST_OOM - 0.01) > 96.0);
        assert_eq!(leaked_percent(LAST_OOM), LEAK_BASE);
        assert!((leaked_percent(leak_crossed(90.0)) - 90.0).abs() < 0.1);
        assert!(leak_crossed(90.0) < LAST_OOM);
    }

    #[test]
    fn the_disk_fills_up_and_stays_full() {
        assert!((filled_percent(filled_at(90.0)) - 90.0).abs() < 0.1);
        assert_eq!(filled_percent(0.0), filled_percent(100.0));
        assert!(filled_percent(0.0) > 96.0);
    }

    #[test]
    fn backups_add_up() {
        let midnight = 20_000.0 * DAY;

        assert_eq!(backup_seconds(midnight + DAY) - backup_seconds(midnight), BACKUP_LASTS);
        assert!(is_backing_up(midnight + BACKUP_AT + 1.0));
        assert!(!is_backing_up(midnight));
    }

    #[test]
    fn the_drive_is_too_warm_now() {
        assert!(drive_celsius(0.0) > 50.0 && drive_crossed(50.0) < 0.0);
        assert!(drive_celsius(-10.0) < 45.0);
    }
}

//! Pure: distinguishes two machines with the same key from one machine that moved, rebooted, or lost its connection.
//!
//! A clone of a machine has the same key. The two then take over the server from each other, and their samples would
//! mix in one history. The hardware identity that agents report distinguishes them. If it is the same or unknown, the
//! boot does: a boot that returns after another one belongs to a different machine.

use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::AgentInfo;

/// How long after the last takeover a conflict lasts. A refused agent tries again after an hour.
const CONFLICT_LASTS_MS: i64 = 3 * 60 * 60 * 1000;

/// Earlier boots that are remembered.
const MAX_EARLIER_BOOTS: usize = 8;

/// Two machines that take over the server from each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    pub since: Timestamp,
    /// The time of the last takeover.
    pub last_at: Timestamp,
    /// The host name of the machine that was refused last.
    pub hostname: String,
    pub address: String,
}

/// Whether a conflict last seen at that time still lasts.
pub fn is_current(last_at: Timestamp, now: Timestamp) -> bool {
    now.millis_since(last_at) < CONFLICT_LASTS_MS
}

/// The machine whose agent connected last, stored with that agent's description.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    hostname: String,
    /// The address that it connected from.
    address: String,
    machine_id: String,
    boot_id: String,
    /// The boots before this one, newest first.
    earlier_boots: Vec<String>,
    pub conflict: Option<Conflict>,
    /// Whether its clock was wrong at the last check.
    pub clock_is_wrong: bool,
}

impl Machine {
    /// The machine stored as JSON; the default if there is none, or if it cannot be read.
    pub fn kept(json: Option<&str>) -> Self {
        json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// The machine of an agent that connects now, after this one. `is_held` says whether this machine's agent is still
    /// connected, as far as is known.
    pub fn followed_by(self, agent: &AgentInfo, address: String, is_held: bool, now: Timestamp) -> Self {
        let is_another = is_held && self.is_another(agent);
        let earlier = self.conflict.filter(|conflict| is_current(conflict.last_at, now));
        let conflict = if is_another {
            let since = earlier.map_or(now, |earlier| earlier.since);
            Some(Conflict { since, last_at: now, hostname: self.hostname, address: self.address })
        } else {
            earlier
        };
        let mut earlier_boots = self.earlier_boots;
        if self.boot_id != agent.boot_id && !self.boot_id.is_empty() {
            earlier_boots.retain(|boot| *boot != self.boot_id && *boot != agent.boot_id);
            earlier_boots.insert(0, self.boot_id);
            earlier_boots.truncate(MAX_EARLIER_BOOTS);
        }
        Self {
            hostname: agent.hostname.clone(),
            address,
            machine_id: agent.machine_id.clone(),
            boot_id: agent.boot_id.clone(),
            earlier_boots,
            conflict,
            clock_is_wrong: self.clock_is_wrong,
        }
    }

    fn is_another(&self, agent: &AgentInfo) -> bool {
        let differs =
            !self.machine_id.is_empty() && !agent.machine_id.is_empty() && self.machine_id != agent.machine_id;
        let came_back = self.boot_id != agent.boot_id && self.earlier_boots.contains(&agent.boot_id);
        differs || came_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    /// Connects agents in order, given the hour, the machine, the boot, and whether the previous agent is still
    /// connected.
    fn conflicts(connects: &[(i64, &str, &str, bool)]) -> Vec<Option<(i64, i64, String)>> {
        let mut machine = Machine::default();
        let after = |(hour, machine_id, boot_id, is_held): &(i64, &str, &str, bool)| {
            let agent = AgentInfo {
                hostname: format!("host-{machine_id}{boot_id}"),
                machine_id: (*machine_id).to_owned(),
                boot_id: (*boot_id).to_owned(),
                ..AgentInfo::default()
            };
            let now = Timestamp::from_millis(hour * HOUR_MS);
            // In its stored form.
            let kept = Machine::kept(Some(&serde_json::to_string(&machine).unwrap()));
            machine = kept.followed_by(&agent, "192.0.2.1".to_owned(), *is_held, now);
            let hour = |at: Timestamp| at.as_millis() / HOUR_MS;
            machine.conflict.as_ref().map(|one| (hour(one.since), hour(one.last_at), one.hostname.clone()))
        };
        connects.iter().map(after).collect()
    }

    fn conflict(since: i64, last_at: i64, hostname: &str) -> Option<(i64, i64, String)> {
        Some((since, last_at, hostname.to_owned()))
    }

    #[test]
    fn a_machine_that_reconnects_is_no_other() {
        let one = [(0, "a", "1", false), (1, "a", "1", true), (2, "a", "2", true), (3, "a", "2", false)];

        assert_eq!(conflicts(&one), [None, None, None, None]);
    }

    #[test]
    fn a_key_may_move_to_another_machine() {
        let moved = [(0, "a", "1", false), (1, "b", "2", false), (2, "b", "2", true)];

        assert_eq!(conflicts(&moved), [None, None, None]);
    }

    #[test]
    fn two_machines_are_reported_from_the_first_time_on_until_one_is_left() {
        let cloned =
            [(0, "a", "1", false), (1, "b", "2", true), (2, "a", "1", true), (3, "a", "1", true), (5, "a", "1", true)];

        let expected = [None, conflict(1, 1, "host-a1"), conflict(1, 2, "host-b2"), conflict(1, 2, "host-b2"), None];
        assert_eq!(conflicts(&cloned), expected);
    }

    #[test]
    fn a_returning_boot_reveals_machines_with_the_same_or_no_identity() {
        for id in ["a", ""] {
            let cloned = [(0, id, "1", false), (1, id, "2", true), (2, id, "1", true), (3, id, "2", true)];

            let [first, second, third, fourth] = conflicts(&cloned).try_into().unwrap();

            assert_eq!((first, second), (None, None), "it may have been rebooted");
            assert_eq!(third.map(|(since, ..)| since), Some(2));
            assert_eq!(fourth, conflict(2, 3, &format!("host-{id}1")));
        }
    }

    #[test]
    fn descriptions_of_older_versions_are_read() {
        assert_eq!(Machine::kept(Some(r#"{"hostname": "web", "boot_id": "1"}"#)).boot_id, "1");
        assert_eq!(Machine::kept(Some("nonsense")), Machine::default());
        assert_eq!(Machine::kept(None), Machine::default());
    }
}

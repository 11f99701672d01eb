//! Decides which channels receive an alert, and when to repeat it.

use std::time::Duration;

use signalbox_protocol::Timestamp;

use super::Channel;

/// Whether a channel receives alerts of this severity from a server with these tags.
pub(super) fn wants(channel: &Channel, severity: &str, tags: &[String]) -> bool {
    channel.is_enabled && channel.severities.split(',').any(|wanted| wanted == severity) && wants_tags(channel, tags)
}

fn wants_tags(channel: &Channel, tags: &[String]) -> bool {
    let wanted = channel_tags(channel);
    wanted.is_empty() || wanted.iter().any(|tag| tags.contains(tag))
}

/// The tags that a channel is for; empty for all servers.
pub fn channel_tags(channel: &Channel) -> Vec<String> {
    // Only somebody who changed the table directly could have written anything else. A notification too many is better than one
    // too few.
    serde_json::from_str(&channel.tags).unwrap_or_default()
}

/// When to repeat an alert on a channel; none for never.
pub(super) fn repetition(channel: &Channel, told_at: Timestamp) -> Option<Timestamp> {
    let minutes = u64::try_from(channel.repeat_minutes).ok().filter(|minutes| *minutes > 0)?;
    let interval = Duration::from_secs(minutes * 60);
    Some(told_at.plus_millis(i64::try_from(interval.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use entity::Millis;
    use uuid::Uuid;

    use super::*;

    fn channel(severities: &str, tags: &str) -> Channel {
        Channel {
            id: Uuid::nil(),
            owner_id: Uuid::nil(),
            name: "ops".to_owned(),
            kind: "webhook".to_owned(),
            settings: Vec::new(),
            destination: String::new(),
            severities: severities.to_owned(),
            tags: tags.to_owned(),
            repeat_minutes: 0,
            tells_recovery: true,
            is_enabled: true,
            created_at: Millis(0),
            updated_at: Millis(0),
        }
    }

    fn tags(tags: &[&str]) -> Vec<String> {
        tags.iter().map(|tag| (*tag).to_owned()).collect()
    }

    #[test]
    fn a_channel_takes_its_severities_whole() {
        let channel = channel("warning,critical", "[]");

        assert!(wants(&channel, "warning", &[]));
        assert!(wants(&channel, "critical", &[]));
        assert!(!wants(&channel, "info", &[]));
        assert!(!wants(&channel, "warn", &[]));
        assert!(!wants(&channel, "warning,critical", &[]));
    }

    #[test]
    fn one_common_tag_is_enough_and_no_tags_means_all_servers() {
        let all = channel("info", "[]");
        let some = channel("info", r#"["production","db"]"#);

        assert!(wants(&all, "info", &[]));
        assert!(wants(&all, "info", &tags(&["staging"])));
        assert!(wants(&some, "info", &tags(&["web", "db"])));
        assert!(!wants(&some, "info", &tags(&["staging"])));
        assert!(!wants(&some, "info", &[]));
        assert!(!wants(&some, "info", &tags(&["Production"])));
    }

    #[test]
    fn a_disabled_channel_takes_nothing() {
        let channel = Channel { is_enabled: false, ..channel("info", "[]") };

        assert!(!wants(&channel, "info", &[]));
    }

    #[test]
    fn a_repetition_comes_minutes_later_or_never() {
        let told_at = Timestamp::from_millis(1_000);
        let channel = channel("info", "[]");

        assert_eq!(repetition(&channel, told_at), None);
        let channel = Channel { repeat_minutes: 5, ..channel };
        assert_eq!(repetition(&channel, told_at), Some(Timestamp::from_millis(301_000)));
    }
}

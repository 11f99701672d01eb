//! The names of subjects. Each begins with the prefix of the deployment and the version of the messages:
//!
//! | subject | listener | purpose |
//! |---|---|---|
//! | `<prefix>.v1.agent.<server>` | the instance that holds the server's session | requests and messages for an agent |
//! | `<prefix>.v1.instance.<instance>` | that instance | whether it is there; parts of large messages |
//! | `<prefix>.v1.stream.<stream>` | the instance that asked for it | streams: logs, terminals, output of commands |
//! | `<prefix>.v1.feed.<topic>` | instances with subscribers | events of a server, an owner's alerts, the list of servers |
//! | `<prefix>.v1.interest` | all | which topics have subscribers on which instance |
//! | `<prefix>.v1.notice` | all | the audit log has new entries |
//! | `<prefix>.v1.outbox` | all | the outbox has new notifications |

use uuid::Uuid;

/// The version of the messages. Instances of different versions do not receive each other's messages.
const VERSION: &str = "v1";

/// The words after the version, one for each line of the table.
const KINDS: [&str; 7] = ["agent", "instance", "stream", "feed", "interest", "notice", "outbox"];

/// Builds the subjects of one deployment.
#[derive(Debug, Clone)]
pub struct Subjects {
    prefix: String,
}

impl Subjects {
    /// `prefix` may have several parts, separated by dots.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}.{VERSION}") }
    }

    /// The purpose of a subject, as metrics label it.
    pub fn kind(&self, subject: &str) -> &'static str {
        let rest = subject.strip_prefix(&self.prefix).unwrap_or_default();
        let word = rest.split('.').nth(1).unwrap_or_default();
        KINDS.into_iter().find(|kind| *kind == word).unwrap_or("other")
    }

    pub fn agent(&self, server_id: Uuid) -> String {
        format!("{}.agent.{server_id}", self.prefix)
    }

    pub fn instance(&self, instance_id: Uuid) -> String {
        format!("{}.instance.{instance_id}", self.prefix)
    }

    pub fn stream(&self, stream_id: Uuid) -> String {
        format!("{}.stream.{stream_id}", self.prefix)
    }

    pub fn feed(&self, topic: &str) -> String {
        format!("{}.feed.{topic}", self.prefix)
    }

    pub fn interest(&self) -> String {
        format!("{}.interest", self.prefix)
    }

    pub fn outbox(&self) -> String {
        format!("{}.outbox", self.prefix)
    }

    pub fn notice(&self) -> String {
        format!("{}.notice", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_a_kind() {
        let (subjects, id) = (Subjects::new("signalbox.east"), Uuid::nil());

        let all = [
            (subjects.agent(id), "agent"),
            (subjects.instance(id), "instance"),
            (subjects.stream(id), "stream"),
            (subjects.feed("server.1"), "feed"),
            (subjects.interest(), "interest"),
            (subjects.notice(), "notice"),
            (subjects.outbox(), "outbox"),
        ];
        for (subject, kind) in all {
            assert_eq!(subjects.kind(&subject), kind);
        }
        assert_eq!(subjects.kind("_INBOX.1.2"), "other");
    }
}

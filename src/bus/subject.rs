//! What subjects are called. All begin with a prefix of the deployment and the version of the messages:
//!
//! | subject | who listens | what for |
//! |---|---|---|
//! | `<prefix>.v1.agent.<server>` | the instance that holds the server's session | what an agent is asked and told |
//! | `<prefix>.v1.instance.<instance>` | that instance | whether it is there; parts of what is too large for one message |
//! | `<prefix>.v1.stream.<stream>` | the instance that asked for it | what flows: logs, terminals, output of commands |
//! | `<prefix>.v1.feed.<topic>` | instances on which somebody watches | what happens to a server, an owner's alerts, the list of servers |
//! | `<prefix>.v1.interest` | all | which topics somebody watches where |
//! | `<prefix>.v1.notice` | all | look into the audit log now |
//! | `<prefix>.v1.outbox` | all | look into the outbox of notifications now |

use uuid::Uuid;

/// The version of what is sent. Instances of different versions do not hear each other's messages.
const VERSION: &str = "v1";

/// The words behind the version, one for each line of the table.
const KINDS: [&str; 7] = ["agent", "instance", "stream", "feed", "interest", "notice", "outbox"];

/// Makes the subjects of one deployment.
#[derive(Debug, Clone)]
pub struct Subjects {
    prefix: String,
}

impl Subjects {
    /// `prefix` may have several parts, with dots between them.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}.{VERSION}") }
    }

    /// What a subject is for, as the metrics name it.
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
    fn a_subject_says_what_it_is_for() {
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

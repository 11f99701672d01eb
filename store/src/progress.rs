//! The progress of a message: which of its recipients have it, and which may have it. It is stored in the outbox, so that a
//! retry, or another instance after a crash, continues with the rest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How often a recipient is handed a message without an answer. The second time replaces a message that was lost the first
/// time; a third would only repeat one that has arrived twice.
pub const MAX_HAND_OVERS: u8 = 2;

/// The state of a recipient: an address of an e-mail, or the only destination of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Standing {
    /// It does not have the message yet.
    Waiting {
        /// Why, for people.
        reason: String,
    },
    /// It accepted the message.
    Delivered,
    /// It was handed the message and never answered.
    Perhaps {
        /// How often it was handed the message.
        times: u8,
    },
    /// It refused the message.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

/// The final result of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every recipient accepted it.
    Delivered,
    /// Some recipients accepted it.
    Partly,
    /// No recipient confirmed it, but at least one was handed it.
    Perhaps,
    /// No recipient has it.
    Not,
}

/// The recipients of a message, by name. Missing ones were not tried yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Progress(BTreeMap<String, Standing>);

impl Progress {
    /// Reads the stored form. An unreadable one counts as empty: a message sent twice is better than one never sent.
    pub fn read(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The stored form; none when no recipient was tried.
    pub fn written(&self) -> Option<String> {
        if self.0.is_empty() { None } else { serde_json::to_string(self).ok() }
    }

    /// The state of a recipient; none when it was not tried.
    pub fn of(&self, recipient: &str) -> Option<&Standing> {
        self.0.get(recipient)
    }

    /// Sets the state of a recipient.
    pub fn set(&mut self, recipient: &str, standing: Standing) {
        self.0.insert(recipient.to_owned(), standing);
    }

    /// All recipients that were tried, with their states.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Standing)> {
        self.0.iter().map(|(recipient, standing)| (recipient.as_str(), standing))
    }

    /// Records that this recipient has been handed the message and has not answered yet.
    pub fn hand_over(&mut self, recipient: &str) {
        let times = self.hand_overs(recipient).saturating_add(1);
        self.set(recipient, Standing::Perhaps { times });
    }

    /// Whether the message still has to be sent to a recipient.
    pub fn is_left(&self, recipient: &str) -> bool {
        match self.of(recipient) {
            None | Some(Standing::Waiting { .. }) => true,
            Some(Standing::Delivered) => false,
            Some(Standing::Perhaps { times }) => *times < MAX_HAND_OVERS,
            // When nobody has it, the destination may accept it later; one refusal among several recipients is final.
            Some(Standing::Refused { .. }) => !self.has_begun(),
        }
    }

    /// Whether the message is sent to all of `recipients` that can receive it.
    pub fn is_settled(&self, recipients: &[String]) -> bool {
        self.has_begun() && !recipients.iter().any(|recipient| self.is_left(recipient))
    }

    /// Whether a recipient has the message, or may have it.
    pub fn has_begun(&self) -> bool {
        self.0.values().any(|standing| matches!(standing, Standing::Delivered | Standing::Perhaps { .. }))
    }

    /// Whether a recipient has the message, or may have it, and is not sent it again.
    pub fn is_final_for_some(&self) -> bool {
        self.0.iter().any(|(recipient, standing)| match standing {
            Standing::Delivered | Standing::Perhaps { .. } => !self.is_left(recipient),
            Standing::Waiting { .. } | Standing::Refused { .. } => false,
        })
    }

    /// The result; none when no recipient was tried.
    pub fn verdict(&self) -> Option<Verdict> {
        let taken = self.0.values().filter(|standing| **standing == Standing::Delivered).count();
        match taken {
            _ if self.0.is_empty() => None,
            0 if self.has_begun() => Some(Verdict::Perhaps),
            0 => Some(Verdict::Not),
            taken if taken == self.0.len() => Some(Verdict::Delivered),
            _ => Some(Verdict::Partly),
        }
    }

    fn hand_overs(&self, recipient: &str) -> u8 {
        match self.of(recipient) {
            Some(Standing::Perhaps { times }) => *times,
            None | Some(Standing::Waiting { .. } | Standing::Delivered | Standing::Refused { .. }) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Standing {
        Standing::Refused { reason: "550".to_owned() }
    }

    fn progress(standings: &[(&str, Standing)]) -> Progress {
        Progress(standings.iter().map(|(name, standing)| ((*name).to_owned(), standing.clone())).collect())
    }

    #[test]
    fn a_recipient_that_accepted_it_is_not_left() {
        let progress = progress(&[("a", Standing::Delivered), ("b", refused())]);

        let left = ["a", "b", "c"].map(|name| progress.is_left(name));

        assert_eq!(left, [false, false, true]);
        assert!(progress.is_settled(&["a".to_owned(), "b".to_owned()]));
        assert!(!progress.is_settled(&["a".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn when_all_refuse_all_are_left() {
        let progress = progress(&[("a", refused()), ("b", refused())]);

        assert!(progress.is_left("a") && progress.is_left("b"));
        assert!(!progress.is_settled(&["a".to_owned(), "b".to_owned()]));
        assert_eq!(progress.verdict(), Some(Verdict::Not));
    }

    #[test]
    fn without_an_answer_it_is_handed_over_again() {
        let mut progress = Progress::default();

        progress.hand_over("a");
        let once = progress.is_left("a");
        progress.hand_over("a");

        assert_eq!((once, progress.is_left("a")), (true, false));
        assert_eq!(progress.verdict(), Some(Verdict::Perhaps));
    }

    #[test]
    fn it_is_final_for_those_who_are_not_sent_it_again() {
        let mut progress = progress(&[("a", refused()), ("b", Standing::Waiting { reason: "450".to_owned() })]);

        let nobody = progress.is_final_for_some();
        progress.hand_over("c");
        let once = progress.is_final_for_some();
        progress.hand_over("c");

        assert_eq!((nobody, once, progress.is_final_for_some()), (false, false, true));
        progress.set("c", Standing::Delivered);
        assert!(progress.is_final_for_some());
    }

    #[test]
    fn progress_survives_the_round_trip() {
        let mut written = progress(&[("a@example.com", Standing::Delivered), ("b", refused())]);
        written.hand_over("c");

        assert_eq!(Progress::read(written.written().as_deref()), written);
        assert_eq!(Progress::read(Some("?")), Progress::default());
        assert_eq!((Progress::default().written(), Progress::default().verdict()), (None, None));
        assert_eq!(written.verdict(), Some(Verdict::Partly));
    }
}

//! How far a message has come: which of its recipients have it, and which may have it. Kept in the outbox, so that a
//! retry, and the next instance after a crash, goes on with the rest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How often a recipient is handed a message without an answer. The second time rescues what was lost the first time;
/// a third would only repeat what has arrived twice.
pub const MAX_HAND_OVERS: u8 = 2;

/// How a recipient of a message stands: an address of a mail, or the one destination of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Standing {
    /// Does not have it yet, for this reason.
    Waiting { reason: String },
    /// Took it.
    Delivered,
    /// Was handed it so often, and never answered.
    Perhaps { times: u8 },
    /// Does not want it.
    Refused { reason: String },
}

/// What came of a message in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every recipient took it.
    Delivered,
    /// Some took it.
    Partly,
    /// Nobody took it for certain, but somebody was handed it.
    Perhaps,
    Not,
}

/// The recipients of a message, by name. Those that are not in here were not tried yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Progress(BTreeMap<String, Standing>);

impl Progress {
    /// As it is kept. What cannot be read counts as nothing: rather told twice than never.
    pub fn read(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    pub fn written(&self) -> Option<String> {
        if self.0.is_empty() { None } else { serde_json::to_string(self).ok() }
    }

    pub fn of(&self, recipient: &str) -> Option<&Standing> {
        self.0.get(recipient)
    }

    pub fn set(&mut self, recipient: &str, standing: Standing) {
        self.0.insert(recipient.to_owned(), standing);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Standing)> {
        self.0.iter().map(|(recipient, standing)| (recipient.as_str(), standing))
    }

    /// As it is once this recipient has been handed the message, until there is an answer.
    pub fn hand_over(&mut self, recipient: &str) {
        let times = self.hand_overs(recipient).saturating_add(1);
        self.set(recipient, Standing::Perhaps { times });
    }

    /// Whether a recipient still has to be sent the message.
    pub fn is_left(&self, recipient: &str) -> bool {
        match self.of(recipient) {
            None | Some(Standing::Waiting { .. }) => true,
            Some(Standing::Delivered) => false,
            Some(Standing::Perhaps { times }) => *times < MAX_HAND_OVERS,
            // A whole destination may come to its senses; one recipient of several does not hold up the end.
            Some(Standing::Refused { .. }) => !self.has_begun(),
        }
    }

    /// Whether nobody is left of `recipients`.
    pub fn is_settled(&self, recipients: &[String]) -> bool {
        self.has_begun() && !recipients.iter().any(|recipient| self.is_left(recipient))
    }

    /// Whether somebody has the message, or may have it.
    pub fn has_begun(&self) -> bool {
        self.0.values().any(|standing| matches!(standing, Standing::Delivered | Standing::Perhaps { .. }))
    }

    /// None where no recipient is known.
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
    fn a_recipient_that_took_it_is_not_left() {
        let progress = progress(&[("a", Standing::Delivered), ("b", refused())]);

        let left = ["a", "b", "c"].map(|name| progress.is_left(name));

        assert_eq!(left, [false, false, true]);
        assert!(progress.is_settled(&["a".to_owned(), "b".to_owned()]));
        assert!(!progress.is_settled(&["a".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn where_all_refuse_all_are_left() {
        let progress = progress(&[("a", refused()), ("b", refused())]);

        assert!(progress.is_left("a") && progress.is_left("b"));
        assert!(!progress.is_settled(&["a".to_owned(), "b".to_owned()]));
        assert_eq!(progress.verdict(), Some(Verdict::Not));
    }

    #[test]
    fn without_an_answer_it_is_handed_over_once_more() {
        let mut progress = Progress::default();

        progress.hand_over("a");
        let once = progress.is_left("a");
        progress.hand_over("a");

        assert_eq!((once, progress.is_left("a")), (true, false));
        assert_eq!(progress.verdict(), Some(Verdict::Perhaps));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut written = progress(&[("a@example.com", Standing::Delivered), ("b", refused())]);
        written.hand_over("c");

        assert_eq!(Progress::read(written.written().as_deref()), written);
        assert_eq!(Progress::read(Some("?")), Progress::default());
        assert_eq!((Progress::default().written(), Progress::default().verdict()), (None, None));
        assert_eq!(written.verdict(), Some(Verdict::Partly));
    }
}

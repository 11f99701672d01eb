//! Roles and rights on servers, and their words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What somebody is for a server. Each role contains the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees the server.
    Viewer,
    /// Acknowledges, resolves and silences its alerts.
    Responder,
    /// Uses it, as far as the rights go.
    Operator,
    /// Changes it, its keys, thresholds and grants.
    Manager,
    /// Owns it.
    Owner,
}

impl Role {
    /// The roles that a grant can name.
    pub const GRANTED: [Self; 4] = [Self::Viewer, Self::Responder, Self::Operator, Self::Manager];

    /// Every role.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Responder, Self::Operator, Self::Manager, Self::Owner];

    /// The role's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Responder => "responder",
            Self::Operator => "operator",
            Self::Manager => "manager",
            Self::Owner => "owner",
        }
    }

    /// The role of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }
}

/// What an operator may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Starts and stops containers.
    Containers,
    /// Runs commands, and reads those that ran.
    Commands,
    /// Reads logs.
    Logs,
    /// Opens terminals.
    Terminal,
}

impl Right {
    /// Every right, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Containers, Self::Commands, Self::Logs, Self::Terminal];

    /// The right's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::Commands => "commands",
            Self::Logs => "logs",
            Self::Terminal => "terminal",
        }
    }

    /// The right of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.word() == word)
    }

    fn bit(self) -> u8 {
        match self {
            Self::Containers => 1,
            Self::Commands => 2,
            Self::Logs => 4,
            Self::Terminal => 8,
        }
    }
}

/// A set of rights.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights(u8);

impl Rights {
    /// No right.
    pub const NONE: Self = Self(0);

    /// Every right.
    pub const ALL: Self = Self(0b1111);

    /// Whether the right is among them.
    pub fn contains(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The rights of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights that both have.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The rights, in the order in which they are listed.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.contains(*right))
    }

    /// Their words, in order.
    pub fn words(self) -> Vec<&'static str> {
        self.iter().map(Right::word).collect()
    }

    /// As a column stores them.
    pub(super) fn joined(self) -> String {
        self.words().join(",")
    }

    /// From a column. Words that this version does not know give no right.
    pub(super) fn of_joined(text: &str) -> Self {
        text.split(',').filter_map(Right::of_word).collect()
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        Self(rights.into_iter().fold(0, |bits, right| bits | right.bit()))
    }
}

/// A granted role with its rights, in the words in which JSON columns have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRole {
    role: String,
    #[serde(default)]
    rights: Vec<String>,
}

impl StoredRole {
    pub fn new(role: Role, rights: Rights) -> Self {
        Self { role: role.word().to_owned(), rights: rights.words().into_iter().map(str::to_owned).collect() }
    }

    /// None for a role that only a later version understands, or that nobody can grant. Words that this version does not know
    /// give no right.
    pub fn read(&self) -> Option<(Role, Rights)> {
        let role = Role::of_word(&self.role).filter(|role| Role::GRANTED.contains(role))?;
        Some((role, self.rights.iter().filter_map(|word| Right::of_word(word)).collect()))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_contains_the_ones_before_it() {
        assert!(Role::ALL.is_sorted());
        assert!(Role::ALL.iter().all(|role| Role::of_word(role.word()) == Some(*role)));
        assert_eq!(Role::of_word("root"), None);
    }

    #[test]
    fn rights_are_stored_as_words_and_unknown_words_give_none() {
        let rights: Rights = [Right::Terminal, Right::Commands].into_iter().collect();

        assert_eq!(rights.joined(), "commands,terminal");
        assert_eq!(Rights::of_joined("commands,terminal"), rights);
        assert_eq!(Rights::of_joined("commands,reboot"), [Right::Commands].into_iter().collect());
        assert_eq!(Rights::of_joined(""), Rights::NONE);
        assert_eq!(Right::ALL.into_iter().collect::<Rights>(), Rights::ALL);
    }

    #[test]
    fn a_stored_role_keeps_its_text() {
        let rights = [Right::Logs, Right::Commands].into_iter().collect();
        let text = r#"{"role":"operator","rights":["commands","logs"]}"#;

        let stored = StoredRole::new(Role::Operator, rights);

        assert_eq!(serde_json::to_string(&stored).unwrap(), text);
        assert_eq!(serde_json::from_str::<StoredRole>(text).unwrap().read(), Some((Role::Operator, rights)));
    }

    #[test]
    fn a_stored_role_that_is_not_understood_is_none() {
        let read = |text| serde_json::from_str::<StoredRole>(text).unwrap().read();
        let commands = [Right::Commands].into_iter().collect();

        assert_eq!(read(r#"{"role":"owner","rights":[]}"#), None);
        assert_eq!(read(r#"{"role":"root","rights":[]}"#), None);
        assert_eq!(read(r#"{"role":"operator","rights":["reboot","commands"]}"#), Some((Role::Operator, commands)));
        assert_eq!(read(r#"{"role":"viewer"}"#), Some((Role::Viewer, Rights::NONE)));
    }
}

//! What the owner permits: one word, or a list of people who may ask for all of it.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use signalbox_protocol::agent::{Asker, RequestError};

/// The most names of one list.
const MAX_NAMES: usize = 100;

/// The longest name, with `team:`.
const MAX_NAME_BYTES: usize = 200;

/// What comes before the name of a team.
const TEAM: &str = "team:";

/// The grades of a permission, of which one permits everything.
pub trait Graded: Copy + Sized + 'static {
    /// What a list of people means for those in it.
    const HIGHEST: Self;

    /// Reads one of its words, or a list of people.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Permit<Self>, D::Error>;
}

/// What is permitted; the highest grade perhaps to some people only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permit<T> {
    pub grade: T,
    /// Who may ask; none for everybody whom the service lets ask.
    pub people: Option<People>,
}

impl<T> From<T> for Permit<T> {
    fn from(grade: T) -> Self {
        Self { grade, people: None }
    }
}

impl<T> Permit<T> {
    /// Refuses all others than those whom the owner names, if the owner names any. `what` is what this agent does for them.
    pub fn expect(&self, asker: Option<&Asker>, what: &str) -> Result<(), RequestError> {
        match &self.people {
            Some(people) if !asker.is_some_and(|asker| people.include(asker)) => {
                Err(RequestError::new("agent_refused", &format!("this agent {what} for {people} only")))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl<T: Serialize> Serialize for Permit<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.people {
            Some(people) => people.serialize(serializer),
            None => self.grade.serialize(serializer),
        }
    }
}

impl<'de, T: Graded> Deserialize<'de> for Permit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer)
    }
}

/// People by their names at the service: users, and the members of teams as `team:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct People(Vec<String>);

impl People {
    fn of(names: Vec<String>) -> Result<Self, String> {
        if !(1..=MAX_NAMES).contains(&names.len()) {
            return Err(format!("a list of people has 1 to {MAX_NAMES} names; \"off\" permits nobody"));
        }
        let is_wrong = |name: &&String| {
            let bare = name.strip_prefix(TEAM).unwrap_or(name);
            bare.is_empty() || bare.trim() != bare || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control)
        };
        match names.iter().find(is_wrong) {
            Some(name) => {
                Err(format!("`{}` is not the name of a user, or of a team as `team:NAME`", name.escape_debug()))
            }
            None => Ok(Self(names)),
        }
    }

    /// The service takes no two names that differ in case alone.
    fn include(&self, asker: &Asker) -> bool {
        let is_same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        self.0.iter().any(|name| match name.strip_prefix(TEAM) {
            Some(team) => asker.teams.iter().any(|of| is_same(of, team)),
            None => is_same(&asker.user, name),
        })
    }
}

impl fmt::Display for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// Reads one of several words.
pub fn word<'de, D: Deserializer<'de>, T: Copy + 'static>(
    deserializer: D,
    all: &'static [&'static str],
    values: &'static [T],
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Words { all, values, people: None }).map(|permit| permit.grade)
}

/// Reads one of several words, or a list of people.
pub fn word_or_people<'de, D: Deserializer<'de>, T: Graded>(
    deserializer: D,
    all: &'static [&'static str],
    values: &'static [T],
) -> Result<Permit<T>, D::Error> {
    deserializer.deserialize_any(Words { all, values, people: Some(T::HIGHEST) })
}

/// A value that is neither, such as `true`, is refused with the words in the quotes that it lacks.
struct Words<T: 'static> {
    all: &'static [&'static str],
    values: &'static [T],
    /// What a list of people means, if it means anything.
    people: Option<T>,
}

impl<'de, T: Copy> Visitor<'de> for Words<T> {
    type Value = Permit<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self.all.iter().map(|word| format!("\"{word}\"")).collect();
        let list = self.people.map_or("", |_| ", or a list of people");
        write!(f, "one of {}{list}", quoted.join(", "))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Permit<T>, E> {
        let mut pairs = self.all.iter().zip(self.values);
        let found = pairs.find(|(word, _)| **word == text).map(|(_, value)| Permit::from(*value));
        found.ok_or_else(|| E::unknown_variant(text, self.all))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Permit<T>, A::Error> {
        let Some(grade) = self.people else { return Err(A::Error::invalid_type(Unexpected::Seq, &self)) };
        let mut names = Vec::new();
        while let Some(name) = list.next_element()? {
            names.push(name);
        }
        let people = People::of(names).map_err(A::Error::custom)?;
        Ok(Permit { grade, people: Some(people) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{DockerAccess, Policy, Switch};

    fn asker(user: &str, teams: &[&str]) -> Asker {
        Asker { user: user.to_owned(), teams: teams.iter().map(|team| (*team).to_owned()).collect() }
    }

    fn refusal(permit: &Permit<Switch>, asker: Option<&Asker>) -> Option<String> {
        permit.expect(asker, "runs commands").err().map(|error| error.detail)
    }

    #[test]
    fn a_list_permits_everything_to_the_people_in_it_alone() {
        let policy =
            Policy::parse("commands = [\"ada\", \"team:ops\"]\ndocker = [\"ada\"]\nterminal = \"on\"").unwrap();

        assert_eq!((policy.commands.grade, policy.docker.grade), (Switch::On, DockerAccess::Control));
        let only = Some("this agent runs commands for ada, team:ops only".to_owned());
        assert_eq!(refusal(&policy.commands, Some(&asker("Ada", &[]))), None);
        assert_eq!(refusal(&policy.commands, Some(&asker("ben", &["web", "Ops"]))), None);
        assert_eq!(refusal(&policy.commands, Some(&asker("ben", &["web", "ada"]))), only);
        assert_eq!(refusal(&policy.commands, Some(&asker("ops", &[]))), only);
        assert_eq!(refusal(&policy.commands, Some(&asker("team:ops", &[]))), only);
        assert_eq!(refusal(&policy.commands, None), only);
        assert_eq!(refusal(&policy.terminal, None), None);
    }

    #[test]
    fn a_list_is_shown_as_it_was_written() {
        let policy = Policy::parse("commands = [\"ada\", \"team:ops\"]").unwrap();

        let told = serde_json::to_value(&policy).unwrap();

        assert_eq!(told["commands"], serde_json::json!(["ada", "team:ops"]));
        assert_eq!(told["docker"], "read");
    }

    #[test]
    fn a_list_that_names_nobody_or_nonsense_is_refused() {
        let many = format!("commands = {:?}", vec!["ada"; MAX_NAMES + 1]);
        let wrong = |name: &str| format!("line 1: `{name}` is not the name of a user, or of a team as `team:NAME`");
        let cases = [
            (
                "commands = []".to_owned(),
                "line 1: a list of people has 1 to 100 names; \"off\" permits nobody".to_owned(),
            ),
            (many, "line 1: a list of people has 1 to 100 names; \"off\" permits nobody".to_owned()),
            ("terminal = [\"team:\"]".to_owned(), wrong("team:")),
            ("docker = [\" ada\"]".to_owned(), wrong(" ada")),
        ];

        for (text, expected) in cases {
            assert_eq!(Policy::parse(&text).unwrap_err(), expected, "{text}");
        }
        let refused = Policy::parse("logs = [\"ada\"]").unwrap_err();
        assert_eq!(refused, "line 1: invalid type: sequence, expected one of \"off\", \"on\"");
    }
}

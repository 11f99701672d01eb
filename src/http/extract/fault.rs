//! All faults of a request, in pydantic's words.

use std::ops::ControlFlow;

use deserr::{DeserializeError, ErrorKind, IntoValue, MergeWithError, ValueKind, ValuePointerRef};
use serde::Serialize;

/// One fault of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where: `body`, `query`, `path` or `header`, then names and indices.
    pub loc: Vec<Loc>,
    /// The fault for people.
    pub msg: String,
    /// The fault for programs: `value_error.missing`, `type_error.integer`, ...
    pub r#type: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Loc {
    Name(String),
    Index(usize),
}

/// Nobody reads more; a body of one megabyte could have half a million.
const MAX_FAULTS: usize = 100;

/// All faults of a request or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

/// The parts of a request that may have faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Body,
    Query,
    Path,
    Header,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Query => "query",
            Self::Path => "path",
            Self::Header => "header",
        }
    }
}

impl Faults {
    /// One fault at a location inside a part; the part is prepended later.
    pub fn at(location: ValuePointerRef<'_>, kind: &str, msg: impl Into<String>) -> Self {
        Self(vec![Fault { loc: path_of(location), msg: msg.into(), r#type: kind.to_owned() }])
    }

    /// One fault of a whole part.
    pub fn of(part: Part, kind: &str, msg: impl Into<String>) -> Self {
        Self::at(ValuePointerRef::Origin, kind, msg).within(part)
    }

    /// These faults as faults of a part of the request.
    pub fn within(mut self, part: Part) -> Self {
        for fault in &mut self.0 {
            fault.loc.insert(0, Loc::Name(part.name().to_owned()));
        }
        self
    }

    /// One fault of a header.
    pub fn of_header(name: &str, kind: &str, msg: impl Into<String>) -> Self {
        let loc = vec![Loc::Name(Part::Header.name().to_owned()), Loc::Name(name.to_owned())];
        Self(vec![Fault { loc, msg: msg.into(), r#type: kind.to_owned() }])
    }
}

fn path_of(location: ValuePointerRef<'_>) -> Vec<Loc> {
    match location {
        ValuePointerRef::Origin => Vec::new(),
        ValuePointerRef::Key { key, prev } => {
            let mut path = path_of(*prev);
            path.push(Loc::Name(key.to_owned()));
            path
        }
        ValuePointerRef::Index { index, prev } => {
            let mut path = path_of(*prev);
            path.push(Loc::Index(index));
            path
        }
    }
}

impl MergeWithError<Faults> for Faults {
    fn merge(before: Option<Self>, other: Faults, _: ValuePointerRef<'_>) -> ControlFlow<Self, Self> {
        let mut all = before.unwrap_or_default();
        let room = MAX_FAULTS.saturating_sub(all.0.len());
        all.0.extend(other.0.into_iter().take(room));
        // Never stops early: the caller gets all faults at once.
        ControlFlow::Continue(all)
    }
}

impl DeserializeError for Faults {
    fn error<V: IntoValue>(
        before: Option<Self>,
        error: ErrorKind<'_, V>,
        location: ValuePointerRef<'_>,
    ) -> ControlFlow<Self, Self> {
        let fault = match error {
            ErrorKind::MissingField { field } => {
                let mut fault = Self::at(location, "value_error.missing", "field required");
                fault.0.iter_mut().for_each(|fault| fault.loc.push(Loc::Name(field.to_owned())));
                fault
            }
            ErrorKind::IncorrectValueKind { actual, accepted } => wrong_kind(actual.kind(), accepted, location),
            ErrorKind::UnknownValue { accepted, .. } => not_a_member(accepted, location),
            ErrorKind::UnknownKey { key, .. } => {
                let mut fault = Self::at(location, "value_error.extra", "extra fields not permitted");
                fault.0.iter_mut().for_each(|fault| fault.loc.push(Loc::Name(key.to_owned())));
                fault
            }
            ErrorKind::BadSequenceLen { expected, .. } => {
                Self::at(location, "value_error.list", format!("ensure this value has {expected} items"))
            }
            ErrorKind::Unexpected { msg } => Self::at(location, "value_error", msg),
        };
        MergeWithError::merge(before, fault, location)
    }
}

/// The fault of a value that is not in a closed set.
pub fn not_a_member(permitted: &[&str], location: ValuePointerRef<'_>) -> Faults {
    let permitted: Vec<_> = permitted.iter().map(|value| format!("'{value}'")).collect();
    let msg = format!("value is not a valid enumeration member; permitted: {}", permitted.join(", "));
    Faults::at(location, "type_error.enum", msg)
}

/// The fault of a value whose JSON type is none of `accepted`.
pub fn wrong_kind(actual: ValueKind, accepted: &[ValueKind], location: ValuePointerRef<'_>) -> Faults {
    if actual == ValueKind::Null {
        return Faults::at(location, "type_error.none.not_allowed", "none is not an allowed value");
    }
    let (kind, msg) = match accepted.first() {
        Some(ValueKind::String) => ("type_error.str", "str type expected"),
        Some(ValueKind::Integer | ValueKind::NegativeInteger) => ("type_error.integer", "value is not a valid integer"),
        Some(ValueKind::Float) => ("type_error.float", "value is not a valid float"),
        Some(ValueKind::Boolean) => ("type_error.bool", "value could not be parsed to a boolean"),
        Some(ValueKind::Sequence) => ("type_error.list", "value is not a valid list"),
        Some(ValueKind::Map) => ("type_error.dict", "value is not a valid dict"),
        Some(ValueKind::Null) | None => ("type_error", "value is not valid"),
    };
    Faults::at(location, kind, msg)
}

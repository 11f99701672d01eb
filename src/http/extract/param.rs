//! Values in paths and queries, which arrive as text.

use std::collections::HashSet;

use deserr::{Deserr, IntoValue, Value, ValueKind, ValuePointerRef};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::fault::{Faults, wrong_kind};
use super::field::described;
use crate::http::reply::fault_of;
use crate::store::PageRequest;

/// The text of a parameter.
fn text<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<String, Faults> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_kind(other.kind(), &[ValueKind::String], location)),
    }
}

/// An id in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(pub Uuid);

impl Deserr<Faults> for Id {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = text(value, location)?;
        // Only the usual form: other forms would be further addresses of the same object.
        let id = Uuid::try_parse(&text).ok().filter(|_| text.len() == 36);
        id.map(Self).ok_or_else(|| Faults::at(location, "type_error.uuid", "value is not a valid uuid"))
    }
}

described!(Id, json!({ "type": "string", "format": "uuid" }));

/// Several ids, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids(pub Vec<Uuid>);

/// As many as an address has room for.
const MAX_IDS: usize = 100;

impl Deserr<Faults> for Ids {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = text(value, location)?;
        let ids: Option<Vec<Uuid>> =
            text.split(',').map(|id| Uuid::try_parse(id).ok().filter(|_| id.len() == 36)).collect();
        let ids = ids.ok_or_else(|| Faults::at(location, "type_error.uuid", "value is not a valid uuid"))?;
        if ids.len() > MAX_IDS {
            let msg = format!("ensure this value has at most {MAX_IDS} items");
            return Err(Faults::at(location, "value_error.list.max_items", msg));
        }
        Ok(Self(ids))
    }
}

/// The form of an id.
const ID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

described!(Ids, json!({ "type": "string", "pattern": format!("^{ID}(,{ID}){{0,{}}}$", MAX_IDS - 1) }));

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Deserr<Faults> for Whole<MIN, MAX> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = text(value, location)?;
        let is_number = !text.is_empty() && text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || text == "-" {
            return Err(Faults::at(location, "type_error.integer", "value is not a valid integer"));
        }
        let number = if text.starts_with('-') { None } else { Some(text.parse::<u64>().unwrap_or(u64::MAX)) };
        match number {
            None if MIN == 0 && text.trim_matches(['-', '0']).is_empty() => Ok(Self(0)),
            None => Err(below(MIN, location)),
            Some(number) if number < MIN => Err(below(MIN, location)),
            Some(number) if number > MAX => Err(above(MAX, location)),
            Some(number) => Ok(Self(number)),
        }
    }
}

/// The fault of a number below its minimum.
pub fn below(least: u64, location: ValuePointerRef<'_>) -> Faults {
    let msg = format!("ensure this value is greater than or equal to {least}");
    Faults::at(location, "value_error.number.not_ge", msg)
}

/// The fault of a number above its maximum.
pub fn above(greatest: u64, location: ValuePointerRef<'_>) -> Faults {
    let msg = format!("ensure this value is less than or equal to {greatest}");
    Faults::at(location, "value_error.number.not_le", msg)
}

impl<const MIN: u64, const MAX: u64> paperclip::v2::schema::Apiv2Schema for Whole<MIN, MAX> {
    fn raw_schema() -> paperclip::v2::models::DefaultSchemaRaw {
        super::field::described_as(json!({ "type": "integer", "format": "int64", "minimum": MIN, "maximum": MAX }))
    }
}

/// A time: ISO 8601 with any offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeParam(pub Timestamp);

impl Deserr<Faults> for TimeParam {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = text(value, location)?;
        // A `+` in an offset that was not percent-encoded has become a space.
        Timestamp::parse(&text.replace(' ', "+"))
            .map(Self)
            .ok_or_else(|| Faults::at(location, "value_error.datetime", "invalid datetime format"))
    }
}

described!(TimeParam, json!({ "type": "string", "format": "date-time", "example": "2026-11-20T09:30:00Z" }));

/// Checks that a range does not end before it begins; the fault is at its end.
pub fn in_order(since: Option<TimeParam>, until: Option<TimeParam>) -> Result<(), Faults> {
    match (since, until) {
        (Some(since), Some(until)) if until.0 < since.0 => {
            Err(fault_of("until", "value_error.range", "ensure that until is not before since"))
        }
        _ => Ok(()),
    }
}

/// A boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag(pub bool);

impl Flag {
    /// The value of a parameter, or `usual` if it is missing.
    pub fn or(given: Option<Self>, usual: bool) -> bool {
        given.map_or(usual, |Self(flag)| flag)
    }
}

impl Deserr<Faults> for Flag {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match text(value, location)?.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Self(true)),
            "false" | "0" | "no" | "off" => Ok(Self(false)),
            _ => Err(Faults::at(location, "type_error.bool", "value could not be parsed to a boolean")),
        }
    }
}

described!(Flag, json!({ "type": "boolean" }));

/// Text to search for, such as part of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchText(pub String);

/// No name is longer.
const MAX_SEARCH: usize = 200;

impl Deserr<Faults> for SearchText {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        super::field::bounded(text(value, location)?, 0, MAX_SEARCH, location).map(Self)
    }
}

described!(SearchText, json!({ "type": "string", "maxLength": MAX_SEARCH, "pattern": super::field::TEXT }));

/// Names, separated by commas or in several parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(pub HashSet<String>);

impl Deserr<Faults> for Names {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let texts: Vec<String> = match value {
            Value::String(text) => vec![text],
            other => Vec::<String>::deserialize_from_value(other, location)?,
        };
        let names = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
        Ok(Self(names.filter(|name| !name.is_empty()).map(str::to_owned).collect()))
    }
}

described!(Names, json!({ "type": "string", "example": "cpu_percent,memory_percent" }));

/// The page of a list.
#[derive(Debug, Clone, Copy, Deserr, paperclip::actix::Apiv2Schema)]
#[deserr(error = Faults)]
pub struct PageQuery {
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// 2^53 - 1: the largest number that every JSON parser reads exactly.
pub const MAX_OFFSET: u64 = 9_007_199_254_740_991;

const DEFAULT_LIMIT: u64 = 100;

/// The page that two parameters select.
pub fn page(limit: Option<Whole<1, 500>>, offset: Option<Whole<0, { MAX_OFFSET }>>) -> PageRequest {
    PageRequest {
        limit: limit.map_or(DEFAULT_LIMIT, |Whole(limit)| limit),
        offset: offset.map_or(0, |Whole(offset)| offset),
    }
}

impl From<PageQuery> for PageRequest {
    fn from(query: PageQuery) -> Self {
        page(query.limit, query.offset)
    }
}

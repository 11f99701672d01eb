//! Values in paths and queries, which arrive as text.

use std::collections::HashSet;

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::fault::Faults;
use super::field::{described, string};
use crate::http::reply::fault_of;
use crate::store::PageRequest;

/// The text of a parameter. That of a repeated one is empty, which is no value of any type but text.
fn text<V: IntoValue>(value: Value<V>) -> String {
    match value {
        Value::String(text) => text,
        _ => String::new(),
    }
}

/// An id in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(pub Uuid);

impl Deserr<Faults> for Id {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = text(value);
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
        let text = text(value);
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
        let text = text(value);
        let digits = text.strip_prefix('-').unwrap_or(&text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Faults::at(location, "type_error.integer", "value is not a valid integer"));
        }
        let number = digits.parse::<u64>().unwrap_or(u64::MAX);
        let is_negative = digits.len() < text.len() && number > 0;
        if is_negative || number < MIN {
            return Err(below(MIN, location));
        }
        if number > MAX {
            return Err(above(MAX, location));
        }
        Ok(Self(number))
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
        let text = text(value);
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
        match text(value).to_ascii_lowercase().as_str() {
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
        super::field::bounded(string(value, location)?, 0, MAX_SEARCH, location).map(Self)
    }
}

described!(SearchText, json!({ "type": "string", "maxLength": MAX_SEARCH, "pattern": super::field::TEXT }));

/// Texts of ids, separated by commas or in several parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdTexts(pub HashSet<String>);

impl Deserr<Faults> for IdTexts {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let texts = texts(value, location)?;
        Ok(Self(texts.iter().flat_map(|text| listed(text)).map(str::to_owned).collect()))
    }
}

described!(IdTexts, json!({ "type": "string", "example": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10" }));

/// The texts of a parameter that may be repeated.
pub fn texts<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Vec<String>, Faults> {
    match value {
        Value::String(text) => Ok(vec![text]),
        other => Vec::<String>::deserialize_from_value(other, location),
    }
}

/// What commas separate in a text, without the blanks around it.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The type of a value's fault, if it has one.
    fn kind_of<T: Deserr<Faults>>(value: serde_json::Value) -> Option<String> {
        let Faults(found) = deserr::deserialize::<T, _, Faults>(value).err()?;
        found.into_iter().next().map(|fault| fault.r#type)
    }

    #[test]
    fn a_number_has_one_sign_at_most() {
        let cases = [
            ("5", None),
            ("005", None),
            ("-5", Some("value_error.number.not_ge")),
            ("-99999999999999999999", Some("value_error.number.not_ge")),
            ("0", Some("value_error.number.not_ge")),
            ("-0", Some("value_error.number.not_ge")),
            ("501", Some("value_error.number.not_le")),
            ("99999999999999999999", Some("value_error.number.not_le")),
        ];
        for (text, expected) in cases {
            assert_eq!(kind_of::<Whole<1, 500>>(json!(text)).as_deref(), expected, "{text}");
        }
        for text in ["", "-", "--", "--5", "--0", "---0", "-5-", "+5", " 5", "5.0", "five"] {
            let kind = Some("type_error.integer");
            assert_eq!(kind_of::<Whole<1, 500>>(json!(text)).as_deref(), kind, "{text}");
            assert_eq!(kind_of::<Whole<0, 500>>(json!(text)).as_deref(), kind, "{text}");
        }
        for text in ["0", "-0", "-000"] {
            assert_eq!(kind_of::<Whole<0, 500>>(json!(text)), None, "{text}");
        }
    }

    #[test]
    fn a_repeated_parameter_has_the_wrong_type() {
        let (numbers, flags, ids) = (json!(["1", "2"]), json!(["true", "true"]), json!([Uuid::nil(), Uuid::nil()]));

        assert_eq!(kind_of::<Whole<1, 500>>(numbers).as_deref(), Some("type_error.integer"));
        assert_eq!(kind_of::<Flag>(flags).as_deref(), Some("type_error.bool"));
        assert_eq!(kind_of::<Id>(ids.clone()).as_deref(), Some("type_error.uuid"));
        assert_eq!(kind_of::<Ids>(ids).as_deref(), Some("type_error.uuid"));
        assert_eq!(kind_of::<TimeParam>(json!(["", ""])).as_deref(), Some("value_error.datetime"));
        assert_eq!(kind_of::<SearchText>(json!(["a", "b"])).as_deref(), Some("type_error.str"));
    }
}

//! Fields of bodies. Each type checks its limits and documents them in the OpenAPI document.

use std::net::IpAddr;
use std::str::FromStr;

use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};
use paperclip::v2::models::{DataType, DefaultSchemaRaw};
use secrecy::SecretString;
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

pub use super::characters::{FILLED_LINE, LINE, PROSE, TEXT, bounded, line, plain, prose};
use super::fault::{Faults, wrong_kind};
use super::param::{above, below};
use crate::address::is_email;

/// Marks a schema that the OpenAPI document shows as it is. paperclip loses limits and patterns on the way to OpenAPI
/// 3, but keeps the text of an enum value.
pub const DESCRIBED: &str = "x-described:";

/// A schema that the OpenAPI document shows as it is.
pub fn described_as(schema: serde_json::Value) -> DefaultSchemaRaw {
    DefaultSchemaRaw {
        data_type: Some(DataType::String),
        enum_: vec![format!("{DESCRIBED}{schema}").into()],
        ..DefaultSchemaRaw::default()
    }
}

/// Sets the schema of a type.
macro_rules! described {
    ($type:ty, $schema:expr) => {
        impl paperclip::v2::schema::Apiv2Schema for $type {
            fn raw_schema() -> paperclip::v2::models::DefaultSchemaRaw {
                $crate::http::extract::field::described_as($schema)
            }
        }
    };
}
pub(crate) use described;

/// Returns the string of a value, or a fault.
pub fn string<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<String, Faults> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_kind(other.kind(), &[ValueKind::String], location)),
    }
}

/// Implements a field that is a validated string.
macro_rules! text_field {
    ($(#[$doc:meta])* $name:ident($inner:ty), $check:expr, $schema:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(pub $inner);

        impl Deserr<Faults> for $name {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                location: ValuePointerRef<'_>,
            ) -> Result<Self, Faults> {
                let check: fn(String, ValuePointerRef<'_>) -> Result<$inner, Faults> = $check;
                check(string(value, location)?, location).map(Self)
            }
        }

        described!($name, $schema);
    };
}
pub(crate) use text_field;

text_field!(
    /// An e-mail address with the syntax of RFC 5321.
    Email(String),
    |text, location| {
        if is_email(&text) { Ok(text) } else { Err(Faults::at(location, "value_error.email", "value is not a valid email address")) }
    },
    json!({ "type": "string", "format": "email", "maxLength": 254, "example": "ada@example.com" })
);

text_field!(
    /// A user name.
    Username(String),
    |text, location| {
        let text = bounded(text, 3, 64, location)?;
        let sound = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        let msg = "string does not match regex \"^[A-Za-z0-9_.-]+$\"";
        if sound { Ok(text) } else { Err(Faults::at(location, "value_error.str.regex", msg)) }
    },
    json!({ "type": "string", "minLength": 3, "maxLength": 64, "pattern": "^[A-Za-z0-9_.-]+$", "example": "ada" })
);

text_field!(
    /// A new password.
    NewPassword(SecretString),
    |text, location| bounded(text, 8, 128, location).map(SecretString::from),
    json!({ "type": "string", "format": "password", "minLength": 8, "maxLength": 128, "pattern": TEXT, "example": "correct horse battery" })
);

text_field!(
    /// A password or token of an existing account: any text, because it is only compared.
    Shown(SecretString),
    |text, location| bounded(text, 0, 8_192, location).map(SecretString::from),
    json!({ "type": "string", "maxLength": 8_192, "pattern": TEXT })
);

text_field!(
    /// A user name or e-mail address of a sign-in: any text, because it is only looked up.
    LoginName(String),
    |text, location| bounded(text, 0, 254, location),
    json!({ "type": "string", "maxLength": 254, "pattern": TEXT, "example": "ada" })
);

text_field!(
    /// A person's name.
    FullName(String),
    |text, location| line(text, 0, 200, location),
    json!({ "type": "string", "maxLength": 200, "pattern": LINE, "example": "Ada Lovelace" })
);

text_field!(
    /// The name of an object.
    Name(String),
    |text, location| line(text, 1, 100, location),
    json!({ "type": "string", "minLength": 1, "maxLength": 100, "pattern": FILLED_LINE, "example": "web-1" })
);

text_field!(
    /// A host name, or an IPv4 or IPv6 address.
    Host(String),
    |text, location| {
        let text = bounded(text, 1, 253, location)?;
        let sound = IpAddr::from_str(&text).is_ok() || is_host_name(&text);
        if sound { Ok(text) } else { Err(Faults::at(location, "value_error.host", "value is not a host name or IP address")) }
    },
    json!({ "type": "string", "minLength": 1, "maxLength": 253, "example": "203.0.113.7",
            "anyOf": [{ "format": "hostname" }, { "format": "ipv4" }, { "format": "ipv6" }] })
);

text_field!(
    /// A longer text.
    Description(String),
    |text, location| prose(text, 0, 2_000, location),
    json!({ "type": "string", "maxLength": 2_000, "pattern": PROSE })
);

text_field!(
    /// A tag.
    Tag(String),
    |text, location| line(text, 1, 50, location),
    json!({ "type": "string", "minLength": 1, "maxLength": 50, "pattern": FILLED_LINE, "example": "production" })
);

text_field!(
    /// A shell command.
    ShellCommand(String),
    |text, location| bounded(text, 1, 32_768, location),
    json!({ "type": "string", "minLength": 1, "maxLength": 32_768, "pattern": TEXT, "example": "uptime" })
);

text_field!(
    /// The standard input of a command.
    Stdin(String),
    |text, location| bounded(text, 0, crate::http::extract::MAX_BODY, location),
    json!({ "type": "string", "pattern": TEXT })
);

/// Checks a host name by RFC 1123, 2.1, but permits underscores, which are common in practice.
fn is_host_name(text: &str) -> bool {
    let labels = text.strip_suffix('.').unwrap_or(text).split('.');
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // Four numbers that are no valid address are not a name either.
    let is_numeric = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    !is_numeric && labels.into_iter().all(is_label)
}

/// The tags of an object: at most 20, each once.
#[derive(Debug, Clone, Default)]
pub struct Tags(pub Vec<String>);

const MAX_TAGS: usize = 20;

impl Deserr<Faults> for Tags {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let count = match &value {
            Value::Sequence(items) => items.len(),
            other => return Err(wrong_kind(other.kind(), &[ValueKind::Sequence], location)),
        };
        if count > MAX_TAGS {
            let msg = format!("ensure this value has at most {MAX_TAGS} items");
            return Err(Faults::at(location, "value_error.list.max_items", msg));
        }
        let given = Vec::<Tag>::deserialize_from_value(value, location)?;
        let mut tags = Vec::new();
        for Tag(tag) in given {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        Ok(Self(tags))
    }
}

described!(
    Tags,
    json!({ "type": "array", "maxItems": MAX_TAGS, "example": ["production"],
            "items": { "type": "string", "minLength": 1, "maxLength": 50, "pattern": FILLED_LINE } })
);

/// A field of a change that null clears.
#[derive(Debug, Clone, Default)]
pub enum Clearable<T> {
    /// The change does not mention it.
    #[default]
    Kept,
    Cleared,
    Set(T),
}

impl<T: Deserr<Faults>> Deserr<Faults> for Clearable<T> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match value {
            Value::Null => Ok(Self::Cleared),
            value => T::deserialize_from_value(value, location).map(Self::Set),
        }
    }
}

impl<T> Clearable<T> {
    /// The new value; `None` if the field stays as it is.
    pub fn change<U: Default>(self, value: impl FnOnce(T) -> U) -> Option<U> {
        match self {
            Self::Kept => None,
            Self::Cleared => Some(U::default()),
            Self::Set(set) => Some(value(set)),
        }
    }
}

impl<T: paperclip::v2::schema::Apiv2Schema> paperclip::v2::schema::Apiv2Schema for Clearable<T> {
    fn required() -> bool {
        false
    }

    fn raw_schema() -> DefaultSchemaRaw {
        T::raw_schema()
    }
}

const MAX_PORT: u64 = u16::MAX as u64;

/// A TCP port.
#[derive(Debug, Clone, Copy)]
pub struct Port(pub u16);

impl Deserr<Faults> for Port {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let Number(port) = Number::<1, MAX_PORT>::deserialize_from_value(value, location)?;
        u16::try_from(port).map(Self).map_err(|_| above(MAX_PORT, location))
    }
}

described!(Port, json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_PORT, "example": 22 }));

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy)]
pub struct Number<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Deserr<Faults> for Number<MIN, MAX> {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match value {
            // A whole number that fits no integer is read as a float, and so is 1e20.
            Value::Float(number) if number >= u64::MAX as f64 => Err(above(MAX, location)),
            Value::Float(number) if number <= i64::MIN as f64 => Err(below(MIN, location)),
            Value::Integer(number) if number > MAX => Err(above(MAX, location)),
            Value::Integer(number) if number >= MIN => Ok(Self(number)),
            Value::Integer(_) | Value::NegativeInteger(_) => Err(below(MIN, location)),
            other => Err(wrong_kind(other.kind(), &[ValueKind::Integer], location)),
        }
    }
}

impl<const MIN: u64, const MAX: u64> paperclip::v2::schema::Apiv2Schema for Number<MIN, MAX> {
    fn raw_schema() -> DefaultSchemaRaw {
        described_as(json!({ "type": "integer", "format": "int64", "minimum": MIN, "maximum": MAX }))
    }
}

/// The id of another object.
#[derive(Debug, Clone, Copy)]
pub struct Reference(pub Uuid);

impl Deserr<Faults> for Reference {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = match value {
            Value::String(text) => text,
            Value::Null => return Err(wrong_kind(ValueKind::Null, &[], location)),
            _ => String::new(),
        };
        let id = Uuid::try_parse(&text).ok().filter(|_| text.len() == 36);
        id.map(Self).ok_or_else(|| Faults::at(location, "type_error.uuid", "value is not a valid uuid"))
    }
}

described!(Reference, json!({ "type": "string", "format": "uuid" }));

/// The ids of other objects: at least one.
#[derive(Debug, Clone)]
pub struct References(pub Vec<Uuid>);

impl Deserr<Faults> for References {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match &value {
            Value::Sequence(items) if items.len() > 0 => {}
            Value::Sequence(_) => {
                let msg = "ensure this value has at least 1 items";
                return Err(Faults::at(location, "value_error.list.min_items", msg));
            }
            other => return Err(wrong_kind(other.kind(), &[ValueKind::Sequence], location)),
        }
        let ids = Vec::<Reference>::deserialize_from_value(value, location)?;
        Ok(Self(ids.into_iter().map(|Reference(id)| id).collect()))
    }
}

described!(References, json!({ "type": "array", "minItems": 1, "items": { "type": "string", "format": "uuid" } }));

/// A time: ISO 8601 with any offset.
#[derive(Debug, Clone, Copy)]
pub struct At(pub Timestamp);

impl Deserr<Faults> for At {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = match value {
            Value::String(text) => text,
            Value::Null => return Err(wrong_kind(ValueKind::Null, &[], location)),
            _ => String::new(),
        };
        Timestamp::parse(&text)
            .map(Self)
            .ok_or_else(|| Faults::at(location, "value_error.datetime", "invalid datetime format"))
    }
}

described!(At, json!({ "type": "string", "format": "date-time", "example": "2027-01-01T00:00:00Z" }));

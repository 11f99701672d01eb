//! The fields of a channel in requests and responses.

use std::collections::BTreeMap;

use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use paperclip::v2::models::DefaultSchemaRaw;
use paperclip::v2::schema::Apiv2Schema as Schema;
use serde::Serialize;
use serde_json::json;

use super::settings::{Kind, RawSettings, settings};
use crate::alert_words::Severity;
use crate::http::extract::fault::{Faults, not_a_member, wrong_kind};
use crate::http::extract::field::{Clearable, Name, Number, Tags, described, string};
use crate::http::field_out::{Id, TimeOut};
use crate::notify::channel::{KINDS, Settings};
use crate::store::{Channel, channel_tags};

/// 30 days.
const MAX_REPEAT_MINUTES: u64 = 43_200;

pub type RepeatMinutes = Number<0, MAX_REPEAT_MINUTES>;

/// The severities that a channel is for, each once, in ascending order.
#[derive(Debug, Clone)]
pub struct Severities(pub Vec<&'static str>);

impl Default for Severities {
    fn default() -> Self {
        Self(Severity::WORDS.to_vec())
    }
}

impl Deserr<Faults> for Severities {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let given = match &value {
            Value::Sequence(items) if items.len() == 0 => {
                let msg = "ensure this value has at least 1 items";
                return Err(Faults::at(location, "value_error.list.min_items", msg));
            }
            Value::Sequence(items) if items.len() > MAX_SEVERITIES => {
                let msg = format!("ensure this value has at most {MAX_SEVERITIES} items");
                return Err(Faults::at(location, "value_error.list.max_items", msg));
            }
            Value::Sequence(_) => Vec::<GivenSeverity>::deserialize_from_value(value, location)?,
            other => return Err(wrong_kind(other.kind(), &[ValueKind::Sequence], location)),
        };
        let mut severities: Vec<Severity> = given.into_iter().map(|GivenSeverity(severity)| severity).collect();
        severities.sort_unstable();
        severities.dedup();
        Ok(Self(severities.into_iter().map(Severity::word).collect()))
    }
}

/// Enough to name each one, and some of them twice.
const MAX_SEVERITIES: usize = 10;

struct GivenSeverity(Severity);

impl Deserr<Faults> for GivenSeverity {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let severity = Severity::of(&string(value, location)?);
        severity.map(Self).ok_or_else(|| not_a_member(Severity::WORDS, location))
    }
}

described!(
    Severities,
    json!({ "type": "array", "minItems": 1, "maxItems": MAX_SEVERITIES, "example": ["warning", "critical"],
            "items": { "type": "string", "enum": Severity::WORDS } })
);

#[derive(Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ChannelIn {
    pub name: Name,
    #[deserr(rename = "type")]
    kind: Kind,
    settings: RawSettings,
    /// Whether notifications are sent. Defaults to true.
    #[deserr(default)]
    pub enabled: Option<bool>,
    /// The severities that are sent. Defaults to all.
    #[deserr(default)]
    pub severities: Option<Severities>,
    /// Only alerts of servers with at least one of these tags. Defaults to all servers.
    #[deserr(default)]
    pub tags: Option<Tags>,
    /// Minutes after which an alert is sent again until it is acknowledged. Defaults to 0: never.
    #[deserr(default)]
    pub repeat_minutes: Option<RepeatMinutes>,
    /// Whether the end of an alert is sent. Defaults to true.
    #[deserr(default)]
    pub notify_recovery: Option<bool>,
}

/// A new channel, with its parsed settings.
pub struct NewChannelIn {
    pub given: ChannelIn,
    pub settings: Settings,
}

impl Deserr<Faults> for NewChannelIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let json: serde_json::Value = value.into();
        let place = location.push_key("settings");
        match ChannelIn::deserialize_from_value(json.clone().into_value(), location) {
            Ok(given) => {
                let settings = given.settings.parse(given.kind, place)?;
                Ok(Self { given, settings })
            }
            Err(mut faults) => {
                // Adds the faults of the settings, if the kind of channel is known.
                let kind = json.get("type").and_then(|kind| kind.as_str()).and_then(Kind::of);
                let raw = json.get("settings").filter(|raw| raw.is_object());
                if let Some(Err(others)) = kind.zip(raw).map(|(kind, raw)| settings(kind, raw.clone(), place)) {
                    faults.0.extend(others.0);
                }
                Err(faults)
            }
        }
    }
}

#[derive(Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ChannelPatchIn {
    #[deserr(default)]
    pub name: Option<Name>,
    #[deserr(default, rename = "type")]
    pub kind: Option<Kind>,
    /// Replaces all settings; only a webhook's secret is kept if it is omitted.
    #[deserr(default)]
    pub settings: Option<RawSettings>,
    #[deserr(default)]
    pub enabled: Option<bool>,
    #[deserr(default)]
    pub severities: Clearable<Severities>,
    #[deserr(default)]
    pub tags: Clearable<Tags>,
    #[deserr(default)]
    pub repeat_minutes: Option<RepeatMinutes>,
    #[deserr(default)]
    pub notify_recovery: Option<bool>,
}

/// A change of a channel.
pub struct PatchIn(pub ChannelPatchIn);

impl Deserr<Faults> for PatchIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        ChannelPatchIn::deserialize_from_value(value, location).map(Self)
    }
}

/// Documents the field `kind` under its name in JSON.
macro_rules! documented_as {
    ($type:ty, $fields:ty) => {
        impl Schema for $type {
            fn name() -> Option<String> {
                <$fields as Schema>::name()
            }

            fn raw_schema() -> DefaultSchemaRaw {
                let mut schema = <$fields as Schema>::raw_schema();
                let properties: BTreeMap<_, _> = std::mem::take(&mut schema.properties);
                schema.properties = properties.into_iter().map(|(name, property)| (named(name), property)).collect();
                schema.required = std::mem::take(&mut schema.required).into_iter().map(named).collect();
                schema
            }
        }
    };
}

documented_as!(NewChannelIn, ChannelIn);
documented_as!(PatchIn, ChannelPatchIn);

fn named(name: String) -> String {
    if name == "kind" { "type".to_owned() } else { name }
}

/// The kind of a channel in responses.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct ChannelKindOut(String);

described!(ChannelKindOut, json!({ "type": "string", "enum": KINDS, "example": "webhook" }));

/// A channel. Its settings are never shown.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ChannelOut {
    id: Id,
    name: String,
    r#type: ChannelKindOut,
    enabled: bool,
    /// The public part of its settings: a host, e-mail addresses, a chat.
    destination: String,
    severities: Vec<String>,
    tags: Vec<String>,
    repeat_minutes: i32,
    notify_recovery: bool,
    /// Why nothing can be sent, whatever the destination answers; null if there is no problem.
    problem: Option<String>,
    created_at: TimeOut,
    updated_at: TimeOut,
}

impl ChannelOut {
    /// `problem` says why its settings cannot be used.
    pub fn new(channel: Channel, problem: Option<String>) -> Self {
        Self {
            id: Id(channel.id),
            tags: channel_tags(&channel),
            name: channel.name,
            r#type: ChannelKindOut(channel.kind),
            enabled: channel.is_enabled,
            destination: channel.destination,
            severities: channel.severities.split(',').map(str::to_owned).collect(),
            repeat_minutes: channel.repeat_minutes,
            notify_recovery: channel.tells_recovery,
            problem,
            created_at: TimeOut(channel.created_at.into()),
            updated_at: TimeOut(channel.updated_at.into()),
        }
    }
}

/// A new channel.
#[derive(Serialize, Apiv2Schema)]
pub struct NewChannelOut {
    #[serde(flatten)]
    pub channel: ChannelOut,
    /// The secret that the service generated to sign a webhook's messages; otherwise null. Only this response contains
    /// it.
    pub secret: Option<String>,
}

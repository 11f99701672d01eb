//! Fields of responses with a format of their own.

use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::extract::field::described;

/// The id of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(pub Uuid);

described!(Id, json!({ "type": "string", "format": "uuid", "example": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10" }));

/// A time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TimeOut(pub Timestamp);

described!(TimeOut, json!({ "type": "string", "format": "date-time", "example": "2026-11-20T09:30:00.123Z" }));

/// A number of bytes, exact up to 2^64 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

described!(Bytes, json!({ "type": "integer", "minimum": 0, "example": 17_179_869_184_u64 }));

/// 0 to 100, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Percent(pub f64);

described!(Percent, json!({ "type": "number", "format": "double", "minimum": 0, "maximum": 100, "example": 12.34 }));

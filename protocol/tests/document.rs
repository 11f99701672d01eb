//! docs/reference/protocol.md says what this crate does.

// The allowances of clippy.toml reach test functions only; here every function is part of a test.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, MAX_SAMPLES, ServiceMessage};
use signalbox_protocol::codec::Message;
use signalbox_protocol::series::Unit;
use signalbox_protocol::{Decoded, Encoding, close};

const DOCUMENT: &str = include_str!("../../docs/reference/protocol.md");

/// The messages of all examples, in their order.
fn examples() -> Vec<Value> {
    let blocks = DOCUMENT.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks
        .flat_map(|block| serde_json::Deserializer::from_str(block).into_iter::<Value>().map(Result::unwrap))
        .collect()
}

/// What a peer makes of an example: the message, written again. None if it knows no such type.
fn written_again<T: Message + Serialize>(example: &Value) -> Option<Value> {
    match Encoding::Json.decode::<T>(example.to_string().as_bytes()) {
        Ok(Decoded::Known(message)) => Some(serde_json::to_value(message).unwrap()),
        Ok(Decoded::Unknown) => None,
        Err(error) => panic!("{example}: {error}"),
    }
}

/// Whether everything that `part` says stands in `whole`, too, which may have more fields.
fn is_part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|other| is_part_of(value, other)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(value, other)| is_part_of(value, other))
        }
        _ => part == whole,
    }
}

#[test]
fn each_example_is_a_message_and_has_no_field_that_is_not_read() {
    for example in examples() {
        let written = written_again::<AgentMessage>(&example).or_else(|| written_again::<ServiceMessage>(&example));

        let written = written.unwrap_or_else(|| panic!("no such message: {example}"));
        assert!(is_part_of(&example, &written), "{example} is read as {written}");
    }
}

#[test]
fn each_message_has_an_example() {
    let examples = examples();

    let shown: BTreeSet<&str> = examples.iter().filter_map(|example| example["type"].as_str()).collect();

    let known: BTreeSet<&str> = AgentMessage::TYPES.iter().chain(ServiceMessage::TYPES).copied().collect();
    assert_eq!(shown, known);
}

#[test]
fn each_unit_close_code_and_bound_is_named() {
    let codes = [
        close::MALFORMED,
        close::UNAUTHORIZED,
        close::SERVER_DELETED,
        close::AUTH_TIMEOUT,
        close::REPLACED,
        close::TOO_LARGE,
        close::RESTARTING,
        close::OVERLOADED,
    ];
    let codes = codes.map(|code| format!("\n| {code} | "));
    let units = Unit::ALL.map(|unit| format!("`{}`", unit.as_str()));
    let thousands = |number: usize| format!("{},{:03}", number / 1_000, number % 1_000);
    let bounds = [format!("| samples of one message | {} |", thousands(MAX_SAMPLES))];

    for named in codes.iter().chain(&units).chain(&bounds) {
        assert!(DOCUMENT.contains(named), "{named:?} is missing");
    }
}

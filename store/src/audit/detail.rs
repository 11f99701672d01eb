//! Bounds the details of an entry: many entries are written, and none may be large.

use serde_json::{Value, json};

use super::ByToken;

/// The most bytes of an entry's detail.
const MAX_DETAIL: usize = 2_048;

/// The field with a payload and its signatures.
const SIGNED: &str = "signed";

/// The field with the token that a program used.
const TOKEN: &str = "token";

/// The lengths, in characters, to which long texts are cut in turn until the detail fits.
const CUTS: [usize; 6] = [1_024, 512, 256, 128, 64, 16];

/// The detail as JSON, with the token that was used. Long texts are cut where it would be too large.
pub fn text(detail: Value, token: Option<&ByToken>) -> String {
    let text = bounded(detail);
    match token {
        None => text,
        // After the cuts: its name is short, and the entry must have it.
        Some(ByToken { id, name }) => with_field(text, TOKEN, json!({ "id": id, "name": &**name })),
    }
}

/// The text of an object with one more field.
fn with_field(text: String, name: &str, value: Value) -> String {
    match serde_json::from_str(&text) {
        Ok(Value::Object(mut fields)) => {
            fields.insert(name.to_owned(), value);
            Value::Object(fields).to_string()
        }
        Ok(_) | Err(_) => text,
    }
}

fn bounded(mut detail: Value) -> String {
    if detail.is_null() {
        return "{}".to_owned();
    }
    // What people signed proves something only as a whole. Its own bounds hold for it.
    if let Some(signed) = detail.as_object_mut().and_then(|fields| fields.remove(SIGNED)) {
        return with_field(bounded(detail), SIGNED, signed);
    }
    let whole = detail.to_string();
    if whole.len() <= MAX_DETAIL {
        return whole;
    }
    let cut = CUTS.iter().map(|most| shortened(&detail, *most).to_string()).find(|text| text.len() <= MAX_DETAIL);
    cut.unwrap_or_else(|| json!({ "cut": true }).to_string())
}

fn shortened(value: &Value, most: usize) -> Value {
    match value {
        Value::String(text) if text.chars().count() > most => {
            Value::String(text.chars().take(most).chain(['…']).collect())
        }
        Value::Array(items) => items.iter().map(|item| shortened(item, most)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), shortened(field, most)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_detail_is_an_empty_object() {
        assert_eq!(text(Value::Null, None), "{}");
    }

    #[test]
    fn what_was_signed_is_never_cut() {
        let signed = json!({ "payload": "x".repeat(100_000), "signatures": [{ "type": "sshsig", "signature": "y" }] });
        let detail = text(json!({ "command": "z".repeat(32_768), "signed": signed }), None);

        let parsed: Value = serde_json::from_str(&detail).unwrap();
        assert_eq!(parsed["signed"], signed);
        assert!(parsed["command"].as_str().unwrap().len() < MAX_DETAIL);
    }

    #[test]
    fn a_short_detail_stays_as_it_is() {
        assert_eq!(text(json!({ "name": "web-1" }), None), r#"{"name":"web-1"}"#);
    }

    #[test]
    fn long_texts_are_cut_until_it_fits() {
        for command in ["x".repeat(32_768), "é\u{1}".repeat(10_000)] {
            let detail = text(json!({ "command": command, "timeout": 60 }), None);

            assert!(detail.len() <= MAX_DETAIL, "{}", detail.len());
            let parsed: Value = serde_json::from_str(&detail).unwrap();
            assert_eq!(parsed["timeout"], 60);
            assert!(parsed["command"].as_str().unwrap().ends_with('…'));
        }
    }

    #[test]
    fn a_token_is_named_whatever_is_cut() {
        let token = ByToken { id: uuid::Uuid::nil(), name: "deploy".into() };
        let name_of = |detail| {
            let parsed: Value = serde_json::from_str(&text(detail, Some(&token))).unwrap();
            parsed["token"]["name"].clone()
        };

        let many: Vec<u64> = (0..10_000).collect();
        for detail in [Value::Null, json!({ "command": "x".repeat(32_768) }), json!({ "many": many })] {
            assert_eq!(name_of(detail), "deploy");
        }
    }

    #[test]
    fn a_detail_with_too_many_parts_is_left_out_and_says_so() {
        let many: Vec<u64> = (0..10_000).collect();

        assert_eq!(text(json!({ "many": many }), None), r#"{"cut":true}"#);
    }
}

//! Bounds the details of an entry: many entries are written, and none may be large.

use serde_json::{Value, json};

use super::ByToken;

/// The most bytes of an entry's detail.
const MAX_DETAIL: usize = 2_048;

/// The fields that are never cut, because their own bounds hold for them: what people signed, and what a server is called by those
/// who sign, prove something only as a whole, and other instances end the batches of a deleted account by their ids.
const WHOLE: [&str; 3] = ["signed", "signing", "batches"];

/// The field with the token that a program used.
const TOKEN: &str = "token";

/// The lengths, in characters, to which long texts are cut in turn until the detail fits.
const CUTS: [usize; 6] = [1_024, 512, 256, 128, 64, 16];

/// The detail as JSON, with the token that was used. Long texts are cut where it would be too large.
pub fn text(detail: Value, token: Option<&ByToken>) -> String {
    let mut detail = if detail.is_null() { json!({}) } else { detail };
    let taken = |name: &str| detail.as_object_mut().and_then(|fields| fields.remove_entry(name));
    let whole: Vec<(String, Value)> = WHOLE.into_iter().filter_map(taken).collect();
    let mut bounded = shortened_to_fit(detail);
    if let Some(fields) = bounded.as_object_mut() {
        fields.extend(whole);
        // Its name is short, and the entry must have it.
        fields.extend(token.map(|ByToken { id, name }| (TOKEN.to_owned(), json!({ "id": id, "name": &**name }))));
    }
    bounded.to_string()
}

fn shortened_to_fit(detail: Value) -> Value {
    let fits = |detail: &Value| detail.to_string().len() <= MAX_DETAIL;
    if fits(&detail) {
        return detail;
    }
    let cut = CUTS.iter().map(|most| shortened(&detail, *most)).find(fits);
    cut.unwrap_or_else(|| json!({ "cut": true }))
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
        let signing = json!({ "name": "w".repeat(256), "approvals": 2 });
        let detail = text(json!({ "command": "z".repeat(32_768), "signed": signed, "signing": signing }), None);

        let parsed: Value = serde_json::from_str(&detail).unwrap();
        assert_eq!((&parsed["signed"], &parsed["signing"]), (&signed, &signing));
        assert!(parsed["command"].as_str().unwrap().len() < MAX_DETAIL);
    }

    #[test]
    fn the_batches_of_a_deleted_account_are_never_cut() {
        let batches: Vec<String> = (0..100).map(|number| format!("01936f2e-0000-7000-8000-{number:012}")).collect();
        let detail = text(json!({ "username": "ada", "servers_to": "other", "batches": batches }), None);

        let parsed: Value = serde_json::from_str(&detail).unwrap();
        assert_eq!(parsed, json!({ "username": "ada", "servers_to": "other", "batches": batches }));
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

//! Parses the text of paths, queries and forms.

use actix_web::HttpRequest;
use deserr::Deserr;
use serde_json::{Map, Value};

use super::fault::Faults;

/// Parses the named segments of the path.
pub fn path<T: Deserr<Faults>>(request: &HttpRequest) -> Result<T, Faults> {
    let segments = request.match_info().iter().map(|(name, value)| {
        // The router leaves segments encoded; text that is not UTF-8 cannot be an id.
        let decoded = decode(value);
        (name.to_owned(), Value::String(decoded))
    });
    deserr::deserialize(Value::Object(segments.collect()))
}

/// Parses the parameters of a query string.
pub fn query<T: Deserr<Faults>>(query: &str) -> Result<T, Faults> {
    deserr::deserialize(Value::Object(pairs(query.as_bytes())))
}

/// Parses the fields of a form.
pub fn form<T: Deserr<Faults>>(body: &[u8]) -> Result<T, Faults> {
    deserr::deserialize(Value::Object(pairs(body)))
}

/// Names and texts. A repeated name becomes a list, which only list fields accept.
fn pairs(encoded: &[u8]) -> Map<String, Value> {
    let mut map = Map::new();
    // Cannot fail: any text is a list of pairs.
    let pairs: Vec<(String, String)> = serde_urlencoded::from_bytes(encoded).unwrap_or_default();
    for (name, text) in pairs {
        let text = Value::String(text);
        match map.get_mut(&name) {
            None => _ = map.insert(name, text),
            Some(Value::Array(texts)) => texts.push(text),
            Some(first) => *first = Value::Array(vec![first.take(), text]),
        }
    }
    map
}

fn decode(segment: &str) -> String {
    // Nearly every segment is an id, which has nothing to decode.
    if segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return segment.to_owned();
    }
    // A path segment parses like a pair's name without a value; `+` stands for itself in a path.
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(&segment.replace('+', "%2B").replace(['&', '='], "%3F")).unwrap_or_default();
    pairs.into_iter().next().map(|(name, _)| name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_decoded_as_one_of_a_path() {
        let cases = [
            ("", ""),
            ("019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10", "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10"),
            ("web_1.log", "web_1.log"),
            ("a%20b", "a b"),
            ("a%2Fb%25", "a/b%"),
            ("a+b", "a+b"),
            ("%C3%A9", "é"),
        ];

        for (segment, expected) in cases {
            assert_eq!(decode(segment), expected, "{segment}");
        }
    }
}

//! Discord's webhooks. <https://docs.discord.com/developers/resources/message#embed-object>

use serde_json::{Value, json};

use super::limit::{Room, fit, units};
use super::text::MessageText;

/// A description has at most 4,096 characters, all texts of a message together 6,000.
const ROOM: Room = Room { measure: units, size: 4_096, lines: 100 };

pub fn body(told: &MessageText) -> Value {
    let mut embed = json!({
        "title": format!("{} {}", told.tone.emoji(), escape(&told.headline)),
        "description": fit(told.escaped(escape), ROOM).join("\n"),
        "color": told.tone.colour(),
    });
    if let (Some(link), Some(embed)) = (&told.link, embed.as_object_mut()) {
        embed.insert("url".to_owned(), json!(link));
    }
    // A name must not be able to mention anybody.
    json!({"embeds": [embed], "allowed_mentions": {"parse": []}})
}

/// Escapes all punctuation with a backslash, so that Markdown, mentions and URLs in a name stay plain text.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for letter in text.chars() {
        if letter.is_ascii_punctuation() && !matches!(letter, '.' | ',' | '%') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

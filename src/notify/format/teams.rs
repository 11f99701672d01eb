//! Adaptive Cards, as the webhooks of Teams' Workflows accept them.
//! <https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using>

use serde_json::{Value, json};

use super::limit::{Room, bytes, fit};
use super::text::{MessageText, Tone};

/// A message has at most 28 KB. A byte of text takes up to two in JSON, and each line has its own block.
const ROOM: Room = Room { measure: bytes, size: 10_000, lines: 40 };

/// Names appear only in text runs, which unlike text blocks do not render Markdown.
pub fn body(told: &MessageText) -> Value {
    let headline = json!({
        "type": "RichTextBlock",
        "inlines": [{
            "type": "TextRun",
            "text": format!("{} {}", told.tone.emoji(), told.headline),
            "weight": "Bolder",
            "size": "Medium",
            "color": colour(told.tone),
        }],
    });
    let lines = fit(told.escaped(str::to_owned), ROOM);
    let lines =
        lines.into_iter().map(|line| json!({"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]}));
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": std::iter::once(headline).chain(lines).collect::<Vec<Value>>(),
    });
    if let (Some(link), Some(card)) = (&told.link, card.as_object_mut()) {
        card.insert(
            "actions".to_owned(),
            json!([{"type": "Action.OpenUrl", "title": "Open in Signalbox", "url": link}]),
        );
    }
    let attachment =
        json!({"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card});
    json!({"type": "message", "attachments": [attachment]})
}

/// One of the colours that Adaptive Cards define, which are readable on dark and on light.
fn colour(tone: Tone) -> &'static str {
    match tone {
        Tone::Test => "Default",
        Tone::Resolved => "Good",
        Tone::Info => "Accent",
        Tone::Warning => "Warning",
        Tone::Critical => "Attention",
    }
}

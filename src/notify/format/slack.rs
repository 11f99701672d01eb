//! Slack's incoming webhooks, which Mattermost and Rocket.Chat accept too.
//! <https://docs.slack.dev/reference/block-kit/blocks/section-block>

use serde_json::{Value, json};

use super::limit::{Room, fit, units};
use super::text::MessageText;

/// The text of a section has at most 3,000 characters.
const ROOM: Room = Room { measure: units, size: 3_000, lines: 100 };

/// Names appear only in `plain_text`, which has no markup, so that our own link is the only one.
pub fn body(told: &MessageText) -> Value {
    let headline = format!("{} {}", told.tone.emoji(), escape(&told.headline));
    let lines = fit(told.escaped(escape), ROOM).join("\n");
    let mut blocks = vec![json!({"type": "section", "text": {"type": "plain_text", "text": lines, "emoji": false}})];
    if let Some(link) = &told.link {
        let text = format!("<{}|Open in Signalbox>", escape(link));
        blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": true}]}));
    }
    json!({
        "text": headline,
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "attachments": [{"color": format!("#{:06x}", told.tone.colour()), "fallback": headline, "blocks": blocks}],
    })
}

/// Escapes Slack's three control characters, without which there is no link, no mention and no `<!channel>`.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

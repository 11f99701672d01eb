//! Telegram's Bot API. <https://core.telegram.org/bots/api#sendmessage>

use serde_json::json;

use super::Request;
use super::limit::{Room, fit, units};
use super::text::MessageText;

const BOT_API: &str = "https://api.telegram.org";

/// A text has at most 4,096 characters, some of which are for the headline and the link.
const ROOM: Room = Room { measure: units, size: 3_400, lines: 100 };

pub fn request(url: Option<&str>, bot_token: &str, chat_id: &str, told: &MessageText) -> Request {
    let url = format!("{}/bot{bot_token}/sendMessage", url.unwrap_or(BOT_API).trim_end_matches('/'));
    let mut text = format!("<b>{} {}</b>\n", told.tone.emoji(), escape(&told.headline));
    text.push_str(&fit(told.escaped(escape), ROOM).join("\n"));
    if let Some(link) = &told.link {
        text.push_str(&format!("\n<a href=\"{}\">Open in Signalbox</a>", escape(link)));
    }
    let body = json!({
        "chat_id": chat_id,
        "text": text,
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": true},
    });
    Request::to(url, &body)
}

/// Escapes HTML, and inserts an invisible character after `@`, so that `@name` mentions nobody.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace('@', "@\u{2060}")
}

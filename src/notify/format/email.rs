//! An e-mail, as plain text and as HTML with the same content.

use super::Mail;
use super::limit::{Room, bytes, fit};
use super::text::MessageText;

/// More than a message ever holds, so that a mail lists every alert.
const ROOM: Room = Room { measure: bytes, size: 256 * 1024, lines: 1_000 };

pub fn mail(to: &[String], told: &MessageText) -> Mail {
    Mail { to: to.to_vec(), subject: format!("[Signalbox] {}", told.headline), text: text(told), html: html(told) }
}

fn text(told: &MessageText) -> String {
    let mut text = format!("{}\n\n{}\n", told.headline, fit(told.escaped(str::to_owned), ROOM).join("\n"));
    if let Some(link) = &told.link {
        text.push_str(&format!("\n{link}\n"));
    }
    text
}

/// Uses only elements that every mail program renders alike, no style except the colour, and no remote content.
fn html(told: &MessageText) -> String {
    let lines = told.lines.iter().map(|line| {
        let text = format!("{} {}", line.tone.emoji(), escape(&line.text));
        match &line.link {
            Some(link) => format!("<p>{text} <a href=\"{}\">Open</a></p>", escape(link)),
            None => format!("<p>{text}</p>"),
        }
    });
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"></head><body>\n\
         <h2 style=\"color: #{:06x}\">{}</h2>\n{}\n</body></html>\n",
        told.tone.colour(),
        escape(&told.headline),
        fit(lines.collect(), ROOM).join("\n"),
    )
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

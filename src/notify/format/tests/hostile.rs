//! Names are untrusted: a monitored machine chooses them.

use super::*;

/// A message in which a name contains `text`.
fn with(text: &str) -> Message {
    message(vec![triggered("critical", text, &format!("container {text} has stopped"))])
}

/// All strings in a value that contain part of a name.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text.as_str()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn slack_sees_no_mention_and_no_link() {
    let message = with("<!channel> <@U1> <https://evil.example|click> & *b*");
    let body = body(&slack(), &message);

    let escaped = "&lt;!channel&gt; &lt;@U1&gt; &lt;https://evil.example|click&gt; &amp; *b*";
    let block = &body["attachments"][0]["blocks"][0]["text"];
    assert_eq!(block["text"], format!("🔴 container {escaped} has stopped"));
    assert_eq!(block["type"], "plain_text");
    assert_eq!(body["mrkdwn"], false);
    let ours = format!("<https://signalbox.example.com/alerts/{ALERT}|Open in Signalbox>");
    assert!(texts(&body).iter().all(|text| *text == ours || !text.contains('<')), "{body}");
}

#[test]
fn discord_sees_no_mention_and_no_markdown() {
    let body = body(&discord(), &with("@everyone <@&1> [x](https://evil.example) ||**b**|| `c`"));

    let expected = "🔴 container \\@everyone \\<\\@\\&1\\> \\[x\\]\\(https\\:\\/\\/evil.example\\) \
                    \\|\\|\\*\\*b\\*\\*\\|\\| \\`c\\` has stopped";
    assert_eq!(body["embeds"][0]["description"], expected);
    assert_eq!(body["allowed_mentions"], serde_json::json!({"parse": []}));
}

#[test]
fn telegram_sees_no_markup_and_no_mention() {
    let body = body(&telegram(), &with("<b>x</b> <a href=\"tg://user?id=1\">y</a> &lt; @somebody"));

    let expected = "🔴 container &lt;b&gt;x&lt;/b&gt; &lt;a href=&quot;tg://user?id=1&quot;&gt;y&lt;/a&gt; &amp;lt; \
                    @\u{2060}somebody has stopped";
    assert_eq!(body["text"].as_str().unwrap().lines().nth(1), Some(expected));
}

#[test]
fn a_mail_contains_no_injected_html_or_header() {
    let mail = mail(&with("<img src=x onerror='a'>\r\nBcc: evil@example.com"));

    assert!(!mail.html.contains("<img"), "{}", mail.html);
    assert!(mail.html.contains("&lt;img src=x onerror=&#39;a&#39;&gt;"), "{}", mail.html);
    assert!(!mail.subject.contains(['\r', '\n']), "{:?}", mail.subject);
}

#[test]
fn teams_gotify_and_ntfy_show_markdown_as_plain_text() {
    let message = with("[x](https://evil.example) **b** <at>all</at>");

    let card = &body(&teams(), &message)["attachments"][0]["content"];
    assert!(card["body"].as_array().unwrap().iter().all(|block| block["type"] == "RichTextBlock"), "{card}");
    assert_eq!(card["msteams"], serde_json::json!({"width": "Full"}));
    assert_eq!(body(&gotify(), &message)["extras"]["client::display"]["contentType"], "text/plain");
    assert_eq!(body(&ntfy(), &message).get("markdown"), None);
}

#[test]
fn no_invisible_character_is_sent() {
    let hidden = "a\u{0}b\u{7}c\nd\re\tf\u{1b}[31mg\u{202e}h\u{200b}i\u{2066}j\u{feff}k\u{2028}l\u{e0041}m\u{85}n";
    let message = with(hidden);

    for settings in [slack(), discord(), teams(), telegram(), ntfy(), gotify()] {
        let body = body(&settings, &message);
        for text in texts(&body) {
            let lines: Vec<&str> = text.lines().collect();
            let hides = |letter: char| {
                letter.is_control() || "\u{202e}\u{200b}\u{2066}\u{feff}\u{2028}\u{e0041}".contains(letter)
            };
            assert!(!lines.iter().any(|line| line.contains(hides)), "{}: {text:?}", settings.kind());
        }
    }
    assert_eq!(told(&message).lines[0].text, "container a b c d e f [31mg h i j k l m n has stopped");
}

#[test]
fn a_webhook_gets_names_unchanged() {
    let body = body(&webhook(), &with("a\n<b>\u{202e}"));

    assert_eq!(body["alerts"][0]["server"]["name"], "a\n<b>\u{202e}");
    assert!(!body["text"].as_str().unwrap().contains('\u{202e}'));
}

//! No message is longer than its service accepts.

use super::*;
use crate::notify::push::MAX_TEXT_BYTES;

/// Alerts whose texts have the greatest length, each made of one repeated character.
fn many(count: usize, letter: char) -> Message {
    let text = letter.to_string().repeat(2_000);
    message((0..count).map(|_| triggered("critical", &text, &text)).collect())
}

fn units(value: &Value) -> usize {
    value.as_str().unwrap().encode_utf16().count()
}

/// The characters that grow most: not at all, in HTML, in Markdown, in JSON and in UTF-8.
const LETTERS: [char; 7] = ['a', '&', '"', '*', '\\', '🔥', '\u{1}'];

#[test]
fn no_service_gets_more_than_it_accepts() {
    for letter in LETTERS {
        for count in [1, 10, 150] {
            let message = many(count, letter);

            for block in body(&slack(), &message)["attachments"][0]["blocks"].as_array().unwrap() {
                let text = block.pointer("/text/text").or_else(|| block.pointer("/elements/0/text")).unwrap();
                assert!(units(text) <= 3_000, "slack, {letter}, {count}");
            }

            let embeds = &body(&discord(), &message)["embeds"];
            let (title, description) = (units(&embeds[0]["title"]), units(&embeds[0]["description"]));
            assert_eq!(embeds.as_array().unwrap().len(), 1);
            assert!(title <= 256 && description <= 4_096 && title + description <= 6_000, "discord, {letter}, {count}");

            assert!(units(&body(&telegram(), &message)["text"]) <= 4_096, "telegram, {letter}, {count}");

            let ntfy = request(&ntfy(), &message).body;
            let text = serde_json::from_slice::<Value>(&ntfy).unwrap()["message"].as_str().unwrap().len();
            assert!(text <= 4_096 && ntfy.len() <= 8_192, "ntfy, {letter}, {count}");

            let teams = request(&teams(), &message).body.len();
            assert!(teams <= 28 * 1_024, "teams, {letter}, {count}: {teams}");

            let Ok(Outgoing::Push(push)) = render(&push(), &message, None, message.at) else { panic!("no push") };
            assert!(push.text.len() <= MAX_TEXT_BYTES, "push, {letter}, {count}: {}", push.text.len());
            let shown: Value = serde_json::from_str(&push.text).unwrap();
            // Of a text of control characters nothing is left to show.
            assert!(
                count > 1 || letter.is_control() || shown["text"] != "",
                "push leaves the only alert out, {letter}"
            );

            assert!(units(&Value::from(mail(&message).subject)) <= 200, "mail, {letter}, {count}");
        }
    }
}

#[test]
fn lines_left_out_are_counted() {
    let text = body(&telegram(), &many(40, 'a'))["text"].as_str().unwrap().to_owned();

    let shown = text.lines().filter(|line| line.starts_with("🔴 a")).count();
    assert!(shown >= 5, "{shown}");
    assert!(text.contains(&format!("\n… and {} more\n", 40 - shown)), "{text}");
}

#[test]
fn a_webhook_and_a_mail_leave_nothing_out() {
    let message = many(100, 'a');

    assert_eq!(body(&webhook(), &message)["alerts"].as_array().unwrap().len(), 100);
    assert!(!mail(&message).text.contains("more"));
}

#[test]
fn lines_that_just_fit_are_kept() {
    let room = |size: usize, lines: usize| limit::Room { measure: limit::bytes, size, lines };
    let lines = || vec!["1234".to_owned(), "5678".to_owned(), "9".to_owned()];

    assert_eq!(limit::fit(lines(), room(12, 3)), lines());
    assert_eq!(limit::fit(lines(), room(12, 2)), ["… and 3 more"]);
    assert_eq!(limit::fit(lines(), room(100, 2)), ["1234", "… and 2 more"]);
    assert_eq!(limit::fit(lines(), room(11, 3)), ["… and 3 more"]);
}

#[test]
fn a_cut_text_ends_with_an_ellipsis() {
    assert_eq!(limit::cut("äöü", 3), "äöü");
    assert_eq!(limit::cut("äöüß", 3), "äö…");
}

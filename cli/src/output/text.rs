//! Text of others, and numbers for people.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Text from a server for a terminal: without anything that moves the cursor, changes colours or reverses the writing. Tabs stay.
pub fn clean(text: &str) -> String {
    text.chars().map(|character| if is_harmful(character) { '\u{fffd}' } else { character }).collect()
}

/// A line of a log for a terminal: without its colours, and then [`clean`].
pub fn plain(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some((before, sequence)) = rest.split_once("\x1b[") {
        kept.push_str(before);
        // ECMA-48: parameters, then one letter.
        let end = sequence.find(|character: char| ('@'..='~').contains(&character));
        rest = end.and_then(|end| sequence.get(end + 1..)).unwrap_or_default();
    }
    kept.push_str(rest);
    clean(&kept)
}

/// JSON for a terminal: the same values, with escapes for what [`clean`] replaces. What is below a blank has them already, except for
/// the line ends between values.
pub fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if character > '\u{1f}' && is_harmful(character) {
            // None of these needs more than four digits.
            text.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            text.push(character);
        }
    }
    text
}

/// Text that somebody agrees to: [`clean`], and without characters that a terminal shows as a blank or not at all.
pub fn visible(text: &str) -> String {
    clean(text).chars().map(|character| if is_unseen(character) { '\u{fffd}' } else { character }).collect()
}

/// Blanks that are no space, and what Unicode calls default ignorable. Marks that join the letter before them are seen.
fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3000}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn is_harmful(character: char) -> bool {
    let reverses = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (character.is_control() && character != '\t') || reverses
}

/// A word that a shell takes as it is.
pub fn shell_word(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./:=@%+,".contains(character);
    let needs_none = !word.is_empty() && word.chars().all(is_plain);
    if needs_none { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// At most `columns` of a text, with a mark where the rest was.
pub fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut taken = 1;
    for character in text.chars() {
        taken += character.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        kept.push(character);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// A number of bytes, in three digits.
#[allow(clippy::cast_precision_loss)]
pub fn bytes(count: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = count;
    let mut unit = "B";
    for next in UNITS {
        unit = next;
        if value.abs() < 999.5 {
            break;
        }
        if next != "PiB" {
            value /= 1024.0;
        }
    }
    let digits = if unit == "B" || value.abs() >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}

/// A value of a series in its unit.
pub fn value_in(value: f64, unit: &str) -> String {
    match unit {
        "percent" => format!("{value:.1} %"),
        "bytes" => bytes(value),
        "bytes_per_second" => format!("{}/s", bytes(value)),
        "celsius" => format!("{value:.1} °C"),
        "seconds" => format!("{} s", short(value)),
        "milliseconds" => format!("{} ms", short(value)),
        "per_second" => format!("{}/s", short(value)),
        "volts" => format!("{} V", short(value)),
        "watts" => format!("{} W", short(value)),
        _ => short(value),
    }
}

/// Few digits after the point, and none that say nothing.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn nothing_of_a_server_moves_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\r\n\tc\u{9b}d\u{202e}"), "a�[2Jb��\tc�d�");
        assert_eq!(clean("Größe 5 °C"), "Größe 5 °C");
    }

    #[test]
    fn what_somebody_agrees_to_has_no_character_that_a_terminal_hides() {
        let hidden =
            ['\u{a0}', '\u{ad}', '\u{200b}', '\u{200e}', '\u{2028}', '\u{2060}', '\u{3000}', '\u{feff}', '\u{e0041}'];

        for character in hidden {
            assert_eq!(visible(&format!("rm{character}x")), "rm�x", "{character:?}");
        }
        assert_eq!(visible("a\x1b[2J\u{202e}"), "a�[2J�");
        assert_eq!(visible("Größe e\u{301} 日本 \t|"), "Größe e\u{301} 日本 \t|");
    }

    #[test]
    fn json_for_a_terminal_has_the_same_values_without_characters_that_it_obeys() {
        let value = json!({"a\u{9b}": ["\u{7f}b\u{202e}\u{2066}\x1b\t", "Größe 日本"], "c": {}});

        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = escaped(&text);

            assert!(shown.lines().all(|line| clean(line) == line), "{shown:?}");
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            assert_eq!(shown.lines().count(), text.lines().count());
            assert!(shown.contains("Größe 日本"), "{shown:?}");
        }
    }

    #[test]
    fn colours_of_a_log_are_left_out() {
        assert_eq!(plain("\x1b[31merror\x1b[0m: \x1b]0;title\x07x"), "error: �]0;title�x");
        assert_eq!(plain("cut \x1b[1;3"), "cut ");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width("日本"), 4);
        assert_eq!(shortened("日本語", 5), "日本…");
        assert_eq!(shortened("日本語", 6), "日本語");
    }

    #[test]
    fn numbers_have_few_digits() {
        for (count, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1000.0, "1.0 KiB"),
            (1_536_000.0, "1.5 MiB"),
            (2e12, "1.8 TiB"),
            (-4096.0, "-4.0 KiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(value_in(12.345, "percent"), "12.3 %");
        assert_eq!(value_in(0.5, "count"), "0.5");
        assert_eq!(value_in(2048.0, "bytes_per_second"), "2.0 KiB/s");
    }
}

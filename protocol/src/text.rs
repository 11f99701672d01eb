//! Names and other short texts that strangers choose: which characters of them may reach a terminal, a log or a page.

/// Whether a name may have a character: no control character (C0, C1), and none that changes the direction of the text around
/// it (the embeddings, overrides and isolates of the bidirectional algorithm).
pub fn is_plain(letter: char) -> bool {
    !letter.is_control() && !turns(letter)
}

/// Whether a character makes people read text in another order than it is written in.
pub fn turns(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Removes the characters that a name may not have.
pub fn clean(text: &mut String) {
    // Nearly all texts are plain; those are not rewritten.
    if !text.chars().all(is_plain) {
        text.retain(is_plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plain_stays_and_all_else_goes() {
        let mut hostile = "\u{1b}[31mred\r\n\u{0}\u{85}\u{9b}a\u{202e}b\u{202a}\u{2066}c\u{2069}\u{7f}".to_owned();
        let mut names = "web-1 ü 漢字 שלום \u{200d}👩\u{200d}💻".to_owned();
        let kept = names.clone();

        clean(&mut hostile);
        clean(&mut names);

        assert_eq!((hostile.as_str(), names), ("[31mredabc", kept));
    }
}

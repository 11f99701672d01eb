//! A program's output as text, however its bytes arrive.

use std::mem;

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Joins characters that were cut between two reads. Bytes that are not UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a character: at most three bytes.
    unfinished: Vec<u8>,
}

impl Decoder {
    /// The text of these bytes, without a character that ends with the next ones.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        if self.unfinished.is_empty() {
            return self.decode_whole(bytes);
        }
        let mut joined = mem::take(&mut self.unfinished);
        joined.extend_from_slice(bytes);
        self.decode_whole(&joined)
    }

    /// The rest when nothing follows.
    pub fn finish(&mut self) -> Option<&'static str> {
        let is_left = !mem::take(&mut self.unfinished).is_empty();
        is_left.then_some("\u{fffd}")
    }

    fn decode_whole(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            if chunks.peek().is_none() && is_beginning(chunk.invalid()) {
                self.unfinished = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }
}

/// Whether these bytes may become a character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> String {
        let mut decoder = Decoder::default();
        let mut text: String = pieces.iter().map(|piece| decoder.decode(piece)).collect();
        text.extend(decoder.finish());
        text
    }

    #[test]
    fn a_character_cut_between_two_reads_is_one_character() {
        let euro = "€".as_bytes();

        assert_eq!(decode(&[b"a", &euro[..1], &euro[1..2], &euro[2..], b"b"]), "a€b");
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        assert_eq!(decode(&[b"a\xffb", b"\xe2\x82", b"c"]), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn a_character_that_never_ends_is_replaced_at_the_end() {
        assert_eq!(decode(&["ok €".as_bytes().split_last().unwrap().1]), "ok \u{fffd}");
    }

    proptest! {
        #[test]
        fn cutting_changes_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,40}", at in 1_usize..7) {
            let all = [&bytes[..], text.as_bytes()].concat();
            let pieces: Vec<&[u8]> = all.chunks(at).collect();

            prop_assert_eq!(decode(&pieces), String::from_utf8_lossy(&all));
        }
    }
}
